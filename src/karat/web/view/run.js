// The Run screen: slow sections are fetched one after the other; filters, sort and pages change the table in place.
// Without this script they are plain links.
(() => {
  "use strict";
  if (!view.is("run") || !view.at("queries")) return;
  const { at, all, say, fragment, why, followed } = view;
  const path = location.pathname;
  let asked = null, typing = 0, shown = location.search;

  // Links to a choice of queries in other sections add their filter to what the table shows now.
  function relink() {
    for (const link of all("a[data-adds]")) {
      const state = new URLSearchParams(location.search);
      for (const name of ["page", "show"]) state.delete(name);
      let same = true;
      for (const [name, value] of new URLSearchParams(link.dataset.adds)) {
        same &&= state.get(name) === value;
        state.set(name, value);
      }
      link.setAttribute("href", `${path}?${state}#queries`);
      if (same) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  // Replace the table by that of an address; `then` moves the focus. A newer wish ends an older one.
  async function show(search, then) {
    asked?.abort();
    const own = asked = new AbortController();
    at("results").setAttribute("aria-busy", "true");
    try {
      const found = (await fragment(`${path}/part/queries${search}`, own.signal)).getElementById("results");
      if (own !== asked) return;
      at("results").replaceWith(found);
      shown = search;
      const field = at("search"), words = new URLSearchParams(search).get("q") ?? "";
      if (document.activeElement !== field) field.value = words;
      relink();
      say(at("matches").textContent);
      then?.();
    } catch (error) {
      if (own !== asked) return;
      at("results").removeAttribute("aria-busy");
      say("The queries could not be loaded.");
      at("matches").textContent = `The queries could not be loaded. ${why(error)}`;
    }
  }

  function go(url, then, typed = false) {
    const replace = typed && history.state?.typed;
    if (url.search !== location.search) {
      history[replace ? "replaceState" : "pushState"]({ typed }, "", url.pathname + url.search);
    }
    return show(url.search, then);
  }

  function toTop() {
    const section = at("queries");
    if (section.getBoundingClientRect().top < 0 || section.getBoundingClientRect().top > innerHeight / 2) section.scrollIntoView();
    section.querySelector("h2").focus({ preventScroll: true });
  }

  const controlOf = (link) => link.dataset.control ?? (link.closest("th") ? `sort ${link.textContent}` : "");

  // The same control in the new table, or the heading of the section.
  function again(name) {
    const control = all("a", at("results")).find((one) => controlOf(one) === name);
    if (control) control.focus({ preventScroll: true });
    else toTop();
  }

  const chooses = (url) => {
    const now = new URLSearchParams(location.search), next = url.searchParams;
    return url.origin === location.origin && url.pathname === path && !next.has("show")
      && (next.get("baseline") ?? "") === (now.get("baseline") ?? "");
  };

  document.addEventListener("click", (event) => {
    const { link, url } = followed(event, "main a[href]") ?? {};
    if (!link?.closest("#queries, [data-adds]") || !chooses(url)) return;
    event.preventDefault();
    const control = controlOf(link);
    const turned = link.closest(".pages");
    go(url, () => { if (control && !turned) again(control); else toTop(); });
  });

  window.addEventListener("popstate", () => {
    if (location.search !== shown) return show(location.search);
    asked?.abort();
    asked = null;
    at("results").removeAttribute("aria-busy");
  });

  // While words are typed, the history gets one entry, not one for each letter.
  function searched(typed) {
    const url = new URL(location.href), words = at("search").value.trim().split(/\s+/).join(" ");
    for (const name of ["page", "show"]) url.searchParams.delete(name);
    if (words) url.searchParams.set("q", words);
    else url.searchParams.delete("q");
    if (url.search !== location.search) go(url, null, typed);
  }
  at("search").form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typing);
    searched(false);
  });
  if ("live" in at("search").form.dataset) {
    at("search").addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(searched, 350, true);
    });
  }

  // A query is fetched when it is opened for the first time. The event does not bubble.
  document.addEventListener("toggle", async (event) => {
    const place = event.target.querySelector?.("[data-opened]");
    if (!event.target.open || !place || place.hasAttribute("aria-busy")) return;
    const waiting = document.createElement("p");
    waiting.className = "note";
    waiting.textContent = "Loading …";
    place.querySelector(".problem")?.remove();
    place.append(waiting);
    place.setAttribute("aria-busy", "true");
    try {
      const found = await fragment(place.dataset.opened);
      delete place.dataset.opened;
      waiting.remove();
      place.append(found);
    } catch (error) {
      waiting.className = "note problem";
      waiting.textContent = `The query could not be loaded; close and open it to try again. ${why(error)}`;
    }
    place.removeAttribute("aria-busy");
  }, true);

  relink();
  view.loadSections(fragment, (place, isEmpty) => {
    if (isEmpty) document.querySelector(`main nav a[href="#${place.id}"]`)?.remove();
    relink();
  });
})();
