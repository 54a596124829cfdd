// The Compare screen: sections of large runs are fetched one after the other; a choice of queries changes only their section.
(() => {
  "use strict";
  if (!view.is("compare")) return;
  const { at, all, say, fragment, followed, loadSections } = view;

  const first = document.querySelector("[data-part]"), wanted = location.hash.slice(1);
  loadSections().then(() => {
    if (first && wanted && first.id !== wanted) at(wanted)?.scrollIntoView();
  });

  document.addEventListener("click", async (event) => {
    const { link, url } = followed(event, 'a[href^="/compare?"]') ?? {};
    const old = at("moved");
    if (url?.hash !== "#moved" || !old) return;
    event.preventDefault();
    old.setAttribute("aria-busy", "true");
    try {
      old.replaceWith(await fragment(`/compare/part/moved${url.search}`));
    } catch {
      location.assign(url);
      return;
    }
    history.pushState({ moved: true }, "", url);
    for (const one of all(".scatter a")) {
      if (one.getAttribute("href") === link.getAttribute("href")) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
    }
    const section = at("moved"), heading = section.querySelector("h2");
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    if (!section.contains(link)) section.scrollIntoView();
    say(section.querySelector("caption")?.textContent ?? "No query fits.");
    loadSections();
  });

  addEventListener("popstate", () => {
    if (!location.hash || location.hash === "#moved") location.reload();
  });
})();
