// The screen of one query: lines between the same items of neighbouring columns, the same item highlighted everywhere,
// keys, and a button that copies the link. Without this script the words in each item say the same.
(() => {
  "use strict";
  if (!view.is("query")) return;
  const { at, all, say } = view;

  const box = document.querySelector(".rankings");
  const columns = box ? all(".ranking", box) : [];
  const narrow = matchMedia("(max-width: 44rem)");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.classList.add("lines");
  svg.setAttribute("aria-hidden", "true");
  if (box) box.append(svg);

  const seen = (item) => item.offsetParent !== null;
  const items = (column) => all(".item", column).filter(seen);

  // A line begins and ends at the height of the ranks, in the room between two columns.
  function line(from, to, frame) {
    const a = from.getBoundingClientRect(), b = to.getBoundingClientRect();
    const left = a.right - frame.left + box.scrollLeft, right = b.left - frame.left + box.scrollLeft;
    const up = a.top - frame.top + 16, down = b.top - frame.top + 16, bend = (right - left) / 4;
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", `M${left},${up} C${left + bend},${up} ${right - bend},${down} ${right},${down}`);
    path.dataset.item = from.dataset.item;
    if (from.classList.contains("hit") || to.classList.contains("hit")) path.classList.add("gold");
    return path;
  }

  function draw() {
    const paths = [], frame = box.getBoundingClientRect();
    const lists = narrow.matches ? [] : columns.map(items).filter((list) => list.length);
    for (let i = 0; i + 1 < lists.length; i++) {
      const there = new Map(lists[i + 1].map((item) => [item.dataset.item, item]));
      for (const item of lists[i]) {
        const same = item.dataset.item && there.get(item.dataset.item);
        if (same) paths.push(line(item, same, frame));
      }
    }
    svg.replaceChildren(...paths.sort((a, b) => a.classList.contains("gold") - b.classList.contains("gold")));
    svg.setAttribute("width", box.scrollWidth);
    svg.setAttribute("height", Math.max(0, ...columns.map((column) => column.offsetHeight)));
    mark(marked);
  }

  let marked = null;
  function mark(number) {
    marked = number;
    for (const one of all("[data-item]")) {
      one.classList.toggle("same", number !== null && one.dataset.item === number);
    }
    svg.classList.toggle("quiet", number !== null && svg.querySelector(".same") !== null);
  }

  const numbered = (target) => (target instanceof Element ? target.closest("[data-item]") : null);
  for (const [begin, end] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    document.addEventListener(begin, ({ target }) => { const own = numbered(target); if (own) mark(own.dataset.item); });
    document.addEventListener(end, ({ target }) => { if (numbered(target)) mark(null); });
  }

  // One item can be reached by Tab; the arrow keys move from it, sideways to the same item in the next run.
  let current = null;
  function reach(item) {
    if (current) current.tabIndex = -1;
    current = item;
    current.tabIndex = 0;
  }

  function beside(item, step) {
    const column = columns.indexOf(item.closest(".ranking"));
    for (let i = column + step; i in columns; i += step) {
      const there = items(columns[i]);
      const same = there.find((one) => one.dataset.item && one.dataset.item === item.dataset.item);
      if (same) return same;
      if (there.length) return there[Math.min(items(columns[column]).indexOf(item), there.length - 1)];
    }
    return null;
  }

  function arrow(key, item) {
    if (key === "ArrowLeft" || key === "ArrowRight") return beside(item, key === "ArrowLeft" ? -1 : 1);
    const list = items(item.closest(".ranking"));
    if (key === "Home" || key === "End") return list.at(key === "Home" ? 0 : -1);
    return list[list.indexOf(item) + (key === "ArrowUp" ? -1 : 1)];
  }

  document.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select")) return;
    if (key === "j" || key === "k") {
      const link = at(key === "j" ? "next" : "prev");
      if (link) link.click();
    } else if (/^(Arrow.+|Home|End)$/.test(key) && target.classList.contains("item")) {
      const next = arrow(key, target);
      event.preventDefault();
      if (next) {
        reach(next);
        next.focus();
      }
    }
  });

  for (const item of box ? all(".item", box) : []) {
    item.tabIndex = -1;
    item.addEventListener("focus", () => reach(item));
  }
  const first = box && box.querySelector(".item");
  if (first) reach(first);
  for (const note of all(".keys")) note.hidden = false;

  const link = at("link"), copy = at("copy");
  if (link && copy && navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", () => {
      navigator.clipboard.writeText(link.href).then(() => say("The link is copied."), () => say("The link could not be copied."));
    });
  }

  if (box) {
    new ResizeObserver(draw).observe(box);
    for (const column of columns) new ResizeObserver(draw).observe(column);
    document.addEventListener("toggle", draw, true);
    draw();
  }
})();
