// The Run screen: slow sections are fetched one after the other; filters, sort and pages change the table in place.
// Without this script they are plain links.
(() => {
  if (!document.body.classList.contains("screen-run") || !document.getElementById("queries")) return;

  const at = (id) => document.getElementById(id);
  const path = location.pathname, said = at("said");
  let asked = null, typing = 0, shown = location.search;

  // Fragments are made by our own server, which escapes every text.
  function elements(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  }

  // A fragment of this version of the run; if the file was replaced meanwhile, the whole page is loaded again.
  async function fragment(address, signal) {
    const url = new URL(address, location.href);
    url.searchParams.set("version", at("queries").dataset.version);
    const answer = await fetch(url, { headers: { Accept: "text/html" }, signal });
    if (answer.status === 409) location.reload();
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return elements(await answer.text());
  }

  const tell = (words) => { if (said) said.textContent = words; };

  // Links to a choice of queries in other sections add their filter to what the table shows now.
  function relink() {
    for (const link of document.querySelectorAll("a[data-adds]")) {
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
      tell(at("matches").textContent);
      then?.();
    } catch {
      if (own !== asked) return;
      at("results").removeAttribute("aria-busy");
      tell("The queries could not be loaded.");
      at("matches").textContent = "The queries could not be loaded: is karat view still running?";
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
    const control = [...at("results").querySelectorAll("a")].find((one) => controlOf(one) === name);
    if (control) control.focus({ preventScroll: true });
    else toTop();
  }

  const chooses = (url) => {
    const now = new URLSearchParams(location.search), next = url.searchParams;
    return url.origin === location.origin && url.pathname === path && !next.has("show")
      && (next.get("baseline") ?? "") === (now.get("baseline") ?? "");
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("main a[href]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const url = new URL(link.getAttribute("href"), location.href);
    if (!link.closest("#queries, [data-adds]") || !chooses(url)) return;
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
      place.prepend(found);
    } catch {
      waiting.className = "note problem";
      waiting.textContent = "The query could not be loaded; close and open it to try again.";
    }
    place.removeAttribute("aria-busy");
  }, true);

  // The sections one after the other: each takes a worker of the server for a while.
  async function load() {
    const later = (place) => "later" in place.dataset;
    const places = [...document.querySelectorAll("[data-part]")].sort((a, b) => later(a) - later(b));
    const links = places.map((place) => place.querySelector(".waiting")?.firstElementChild);
    for (const link of links) link?.replaceWith("Loading …");
    for (const [i, place] of places.entries()) {
      try {
        const found = await fragment(place.dataset.part);
        if (!found.firstElementChild) document.querySelector(`main nav a[href="#${place.id}"]`)?.remove();
        place.replaceWith(found);
        relink();
      } catch {
        place.querySelector(".waiting")?.replaceChildren("This section could not be loaded. ", links[i]);
      }
    }
    document.body.dataset.loaded = "";
  }

  relink();
  load();
})();
