"use strict";
// The theme, which the reader can change; the choice is remembered for the next page. This script is in the head, so
// that the choice is applied before anything is drawn.
(() => {
  const root = document.documentElement;
  const kept = () => { try { return localStorage.getItem("karat-theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("karat-theme", theme); } catch { /* not allowed here */ } };
  if (["dark", "light"].includes(kept())) root.dataset.theme = kept();

  function attach() {
    const button = document.getElementById("theme");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      keep(root.dataset.theme);
    });
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", attach);
  else attach();
})();
