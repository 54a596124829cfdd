"use strict";
// The values of a chart at the pointer or, with the arrow keys, at the focus: a rule and a label with all values.
// Without this script the browser shows the same values as titles.
(() => {
  const place = (element, left, top, height) => {
    element.style.left = left + "px";
    element.style.top = top + "px";
    if (height) element.style.height = height + "px";
  };

  function enliven(svg) {
    const stops = [...svg.querySelectorAll(".stop")].map((column) => {
      const title = column.querySelector("title"), words = title.textContent;
      title.remove();
      return { column, words, share: parseFloat(column.dataset.at) / 100 };
    });
    const figure = svg.closest("figure");
    if (!stops.length || !figure) return;
    const rule = document.createElement("div"), values = document.createElement("output");
    rule.className = "rule";
    values.className = "values";
    rule.hidden = values.hidden = true;
    figure.append(rule, values);
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-description", "The arrow keys show the values.");
    let at = -1;

    // The plot begins where the first column begins, and ends where the last one ends.
    function plot() {
      const [first, last] = [stops[0], stops.at(-1)].map((stop) => stop.column.getBoundingClientRect());
      return { left: first.left, width: last.right - first.left, top: first.top, height: first.height };
    }

    function show(i) {
      at = i;
      const box = figure.getBoundingClientRect(), whole = plot();
      const left = whole.left - box.left + stops[i].share * whole.width, top = whole.top - box.top;
      values.textContent = stops[i].words;
      rule.hidden = values.hidden = false;
      place(rule, left, top, whole.height);
      const room = values.offsetWidth + 10, beside = left + room <= box.width ? left + 10 : left - room;
      if (beside >= 0) place(values, beside, top);
      else place(values, Math.max(Math.min(left, box.width - room + 10), 0), top + whole.height + 6);
    }

    function hide() {
      rule.hidden = values.hidden = true;
      at = -1;
    }

    svg.addEventListener("pointermove", (event) => {
      const whole = plot(), share = (event.clientX - whole.left) / whole.width;
      const far = stops.map((stop) => Math.abs(stop.share - share));
      show(far.indexOf(Math.min(...far)));
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const last = stops.length - 1;
      const to = { ArrowRight: Math.min(at + 1, last), ArrowLeft: at < 0 ? last : Math.max(at - 1, 0), Home: 0, End: last }[event.key];
      if (event.key === "Escape") hide();
      if (to === undefined) return;
      event.preventDefault();
      show(to);
    });
  }

  const all = (root) => root.querySelectorAll("svg.curves:not([tabindex])").forEach(enliven);
  all(document);
  // Charts that another script adds to the page later.
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes)
      for (const node of addedNodes) if (node.nodeType === 1) all(node.parentNode ?? node);
  }).observe(document.body, { childList: true, subtree: true });
})();
