(() => {
  "use strict";
  if (!document.body.classList.contains("screen-compare")) return;

  const said = document.getElementById("said");

  async function content(address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const template = document.createElement("template");
    template.innerHTML = await answer.text();
    return template.content;
  }

  async function fill(place) {
    const address = place.dataset.part;
    place.removeAttribute("data-part");
    place.setAttribute("aria-busy", "true");
    try {
      const part = await content(address);
      place.replaceWith(part);
    } catch {
      place.removeAttribute("aria-busy");
      const note = document.createElement("p");
      note.className = "note";
      note.textContent = "This part could not be loaded; its link tries again.";
      place.append(note);
    }
  }

  async function fillAll() {
    let place;
    while ((place = document.querySelector("[data-part]"))) await fill(place);
    if (place === null && said) said.textContent = "";
  }

  const first = document.querySelector("[data-part]");
  if (first) {
    if (said) said.textContent = "Loading the other sections …";
    const wanted = location.hash.slice(1);
    fillAll().then(() => {
      if (wanted && first.id !== wanted) document.getElementById(wanted)?.scrollIntoView();
    });
  }

  // A choice of queries replaces only their section.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest('a[href^="/compare?"]');
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const to = new URL(link.getAttribute("href"), location.href);
    const old = document.getElementById("moved");
    if (to.hash !== "#moved" || !old) return;
    event.preventDefault();
    old.setAttribute("aria-busy", "true");
    try {
      const part = await content(`/compare/part/moved${to.search}`);
      old.replaceWith(part);
    } catch {
      location.assign(to);
      return;
    }
    history.pushState({ moved: true }, "", to);
    for (const one of document.querySelectorAll(".scatter a[aria-current]")) one.removeAttribute("aria-current");
    for (const one of document.querySelectorAll(".scatter a")) {
      if (one.getAttribute("href") === link.getAttribute("href")) one.setAttribute("aria-current", "true");
    }
    const section = document.getElementById("moved");
    const heading = section.querySelector("h2");
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    if (!section.contains(link)) section.scrollIntoView();
    if (said) said.textContent = section.querySelector("caption")?.textContent ?? "No query fits.";
    fillAll();
  });

  addEventListener("popstate", () => {
    if (!location.hash || location.hash === "#moved") location.reload();
  });
})();
