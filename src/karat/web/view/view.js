// Helpers of the scripts of all screens: fragments of the server, sections that are fetched late, and the status line.
const view = (() => {
  "use strict";
  const at = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const is = (screen) => document.body.classList.contains(`screen-${screen}`);

  // The status line: words are seen for a while, unless they have to stay, and remain for screen readers.
  const SEEN = 4000;
  let hiding = 0;
  function say(words, stays = false) {
    const said = at("said");
    clearTimeout(hiding);
    said.classList.remove("seen");
    if (said.textContent !== words) said.textContent = words;
    if (!stays) hiding = setTimeout(() => said.classList.add("seen"), SEEN);
  }

  // Fragments are made by our own server, which escapes every text.
  function elements(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  }

  async function text(address, signal) {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, signal });
    if (!answer.ok) throw Object.assign(new Error(`status ${answer.status}`), { status: answer.status });
    return answer.text();
  }

  // A fragment of the files that the page is of; if one of them was replaced meanwhile, the page is loaded again.
  async function fragment(address, signal) {
    const url = new URL(address, location.href), version = document.querySelector("[data-version]")?.dataset.version;
    if (version) url.searchParams.set("version", version);
    try {
      return elements(await text(url, signal));
    } catch (error) {
      if (error.status === 409) location.reload();
      throw error;
    }
  }

  // Why a fragment could not be loaded, as a sentence.
  function why(error) {
    if (error.status === 404) return "The file of the run may have been moved or deleted.";
    if (error.status === 403) return "Open the address that karat view prints.";
    return error.status ? `The server answered with status ${error.status}.` : "Is karat view still running?";
  }

  // The address of the link that was clicked, if the page is to follow it itself; else null.
  function followed(event, selector) {
    const link = event.target.closest?.(selector);
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return null;
    return { link, url: new URL(link.getAttribute("href"), location.href) };
  }

  // The late sections one after the other, as each takes a worker of the server for a while; one may bring others.
  const links = new Map(), tried = new Set();
  async function loadSections(load = fragment, loaded = () => {}) {
    const later = (place) => "later" in place.dataset;
    const waiting = () => all("[data-part]").filter((place) => !tried.has(place)).sort((a, b) => later(a) - later(b));
    for (let places = waiting(); places.length; places = waiting()) {
      for (const place of places) {
        if (links.has(place)) continue;
        links.set(place, place.querySelector(".waiting")?.firstElementChild);
        links.get(place)?.replaceWith("Loading …");
      }
      const [place] = places;
      tried.add(place);
      try {
        const found = await load(place.dataset.part), isEmpty = !found.firstElementChild;
        place.replaceWith(found);
        loaded(place, isEmpty);
      } catch (error) {
        place.querySelector(".waiting")?.replaceChildren(`This section could not be loaded. ${why(error)} `, links.get(place));
      }
    }
    document.body.dataset.loaded = "";
  }

  return { at, all, is, say, elements, text, fragment, why, followed, loadSections };
})();
