"use strict";
// The theme, which the reader can change; the choice is remembered for the next page.
(() => {
  const button = document.getElementById("theme"), root = document.documentElement;
  const kept = () => { try { return localStorage.getItem("karat-theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("karat-theme", theme); } catch { /* not allowed here */ } };
  if (["dark", "light"].includes(kept())) root.dataset.theme = kept();
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    keep(root.dataset.theme);
  });
})();
