// The labelling page: one query with its items. A key grades the item that has the focus; the focus moves on after the
// server has stored the answer. Keys that come faster wait in a line, and are forgotten if one of them fails.
(() => {
  if (!document.body.classList.contains("screen-label")) return;
  const { $, make, say, plural, id, ask, problem, store, leftover, passage, asked, Refused } = labelling;

  let by = "", scale = [], about = null, sheet = null, current = 0;
  const drafts = new Map(); // notes and quotes of items that are not graded yet
  const place = () => `karat-label ${about.pool} ${by}`; // of what the browser keeps for a person
  const path = (rest) => `/label/${rest}${rest.includes("?") ? "&" : "?"}by=${encodeURIComponent(by)}`;
  const items = () => (sheet ? sheet.items : []);
  const card = (n) => $("items").children[n];

  const marking = labelMarking({
    items, card, expand, quotesOf: (n) => draftOf(items()[n]).quotes, keep: (n, quotes) => queue(() => change(n, { quotes })),
  });
  const lists = labelLists({ path, open: (number, item) => queue(() => open(number, item)), closed: () => focus(current) });
  const standing = labelStanding(() => about.metric);

  // Answers one after the other. After trouble, those that waited are forgotten, and no more are taken until it is
  // over: a key that is pressed again and again must not grade the items that follow.
  let line = Promise.resolve(), waiting = 0, troubles = 0;
  function queue(act) {
    if (waiting > 30 || (waiting && !$("problem").hidden)) return;
    const before = troubles;
    waiting += 1;
    line = line.then(() => (troubles === before ? act() : null)).catch((error) => {
      troubles += 1;
      if (!(error instanceof Refused)) problem(`This page failed: ${error.message}`);
    }).finally(() => { waiting -= 1; });
  }
  document.addEventListener("karat-trouble", () => { troubles += 1; });

  // --- Start

  async function start() {
    sheet = null; // that of the person before must not take a key of the next
    $("items").replaceChildren();
    try {
      about = await ask("/label/work");
    } catch (error) {
      $("work").hidden = false;
      problem(error instanceof Refused ? error.message : "The server does not answer. Reload the page when it is back.");
      return;
    }
    scale = about.scale;
    by = about.by;
    $("who").hidden = Boolean(by);
    $("work").hidden = $("beside").hidden = !by;
    if (!by) {
      $("by").focus();
      return;
    }
    $("me").textContent = by;
    $("guideline").textContent = about.guideline;
    $("guideline-pane").hidden = !about.guideline;
    $("choice-pane").hidden = !about.metric;
    takeDrafts();
    await leftover(place());
    about = await ask("/label/work");
    const wanted = Number.parseInt(location.hash.slice(1), 10) - 1;
    await open(wanted >= 0 && wanted < about.sheets ? wanted : about.next);
    standing.refresh();
  }

  $("who").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await ask("/label/name", { by: $("by").value });
      location.hash = "";
      await start();
    } catch (error) {
      say(error.message);
      $("by").setCustomValidity(error.message);
      $("by").reportValidity();
    }
  });
  $("by").addEventListener("input", () => $("by").setCustomValidity(""));
  $("rename").addEventListener("click", () => {
    $("work").hidden = $("beside").hidden = true;
    $("who").hidden = false;
    $("by").value = by;
    $("by").select();
  });

  // --- A sheet

  async function open(number, item = null) {
    marking.stop();
    if (number === null || number === undefined) {
      finished();
      return;
    }
    sheet = await ask(path(`sheet/${number}`));
    history.replaceState(null, "", `#${number + 1}`);
    $("place").textContent = `${about.metric ? "Step" : "Query"} ${number + 1} of ${sheet.progress.sheets.toLocaleString("en")}`;
    $("query").textContent = asked(sheet);
    $("items").replaceChildren(...sheet.items.map(draw));
    $("previous").disabled = number === 0;
    $("next").disabled = number + 1 >= sheet.progress.sheets;
    showProgress(sheet.progress);
    const first = item === null ? sheet.items.findIndex((one) => !one.label) : sheet.items.findIndex((one) => one.key === item);
    scrollTo(0, 0);
    focus(Math.max(first, 0));
    measure();
    marking.paint();
  }

  function finished() {
    sheet = null;
    $("place").textContent = "";
    $("query").textContent = "All done";
    $("previous").disabled = false;
    $("next").disabled = true;
    const more = about.metric ? "Everything that can change the comparison is labelled." : "You have labelled everything in this pool.";
    $("items").replaceChildren(make("p.done", { tabindex: -1 },
      `${more} Press Ctrl-C where karat label runs: it writes the gold. You may also go back to any query and change answers.`));
    $("items").firstChild.focus();
    ask("/label/work").then((found) => { about = found; if (found.progress) showProgress(found.progress); }, () => {});
  }

  function showProgress(progress) {
    $("bar").max = Math.max(progress.items, 1);
    $("bar").value = progress.done;
    const pace = progress.per_minute ? ` · ${progress.per_minute.toFixed(progress.per_minute < 10 ? 1 : 0)} labels per minute` : "";
    const unit = about.metric ? "steps" : "queries";
    $("progress").textContent = `${progress.done.toLocaleString("en")} of ${plural(progress.items, "item")} · ` +
      `${progress.sheets_done.toLocaleString("en")} of ${progress.sheets.toLocaleString("en")} ${unit}${pace}`;
  }

  const words = (label) => !label ? "no answer yet" : label.answer === "grade" ? `graded ${label.grade}`
    : label.answer === "skip" ? "skipped" : "can’t tell";

  function draw(item, n) {
    const draft = drafts.get(item.key + sheet.query);
    const state = item.label || draft;
    const heading = make("h2", { id: `item-${n}` }, `Item ${n + 1} of ${sheet.items.length}`,
      make("span.answer", {}, words(item.label)));
    const text = passage(item);
    const whole = make("button.whole", { type: "button", hidden: true, "aria-expanded": "false", onclick: () => expand(n) }, "Show all");
    const grades = make("div.grades", { role: "group", "aria-label": "Grade" }, ...scale.map((one) =>
      make("button", {
        type: "button", "aria-pressed": String(Boolean(item.label && item.label.grade === one.grade)),
        onclick: () => queue(() => answer(n, { answer: "grade", grade: one.grade })),
      }, make("b", {}, String(one.grade)), ` ${one.words}`)));
    const other = (name, shown, act, pressed) => make("button", {
      type: "button", "data-act": name, "aria-pressed": pressed === undefined ? null : String(pressed), onclick: act }, shown);
    const is = (name) => Boolean(item.label && item.label.answer === name);
    const more = make("div.more", {},
      other("skip", "Skip", () => queue(() => answer(n, { answer: "skip" })), is("skip")),
      other("cannot tell", "Can’t tell", () => queue(() => answer(n, { answer: "cannot tell" })), is("cannot tell")),
      item.text === null ? null : other("mark", "Mark a passage", () => { focus(n); marking.selected(n); marking.mark(n); }),
      other("note", state && state.note ? "Change the note" : "Note", () => { focus(n); note(); }),
      other("id", "Id", () => { focus(n); showId(); }));
    const quotes = make("ul.quotes", { "aria-label": "Quotes" }, ...((state && state.quotes) || []).map((quote, q) =>
      make("li", {}, make("q", { dir: "auto" }, quote.text), make("button", {
        type: "button", "aria-label": `Remove quote ${q + 1}`, onclick: () => queue(() => removeQuote(n, q)) }, "✕"))));
    const cut = item.length ? make("p.note", {}, `Only the beginning is stored: the whole text has ${item.length.toLocaleString("en")} characters.`) : null;
    const written = state && state.note ? make("p.note.own", { dir: "auto" }, `Note: ${state.note}`) : null;
    const model = item.model === null || item.model === undefined ? null : make("p.note", {}, `The model’s opinion: ${item.model}`);
    const box = make("article.item", { tabindex: n === current ? 0 : -1, "aria-labelledby": `item-${n}`, "data-key": item.key },
      heading, text, whole, cut, make("p.note.id", { hidden: true }), quotes.children.length ? quotes : null, written, model, grades, more);
    box.classList.toggle("answered", Boolean(item.label));
    box.addEventListener("focusin", () => reach(n));
    text.addEventListener("mouseup", () => setTimeout(() => marking.selected(n)));
    text.addEventListener("click", (event) => { if (marking.isOf(n)) marking.point(event.clientX, event.clientY); });
    return box;
  }

  // Draw one item again, and leave the focus and the length of its text as they were.
  function redraw(n) {
    const old = card(n), held = old.contains(document.activeElement), open = old.classList.contains("open");
    const shown = !old.querySelector(".id").hidden;
    const next = draw(items()[n], n);
    old.replaceWith(next);
    next.classList.toggle("current", n === current);
    measure();
    if (open) expand(n, true);
    if (held) next.focus({ preventScroll: true });
    if (shown) showId(n);
    marking.paint();
  }

  const LINES = 8; // as in label.css
  const measure = () => {
    for (const box of $("items").children) {
      const text = box.querySelector(".text"), button = box.querySelector(".whole");
      if (button) button.hidden = text.scrollHeight <= LINES * Number.parseFloat(getComputedStyle(text).lineHeight) + 4;
    }
  };
  addEventListener("resize", measure);

  function expand(n, on = !card(n).classList.contains("open")) {
    const button = card(n).querySelector(".whole");
    card(n).classList.toggle("open", on);
    button.textContent = on ? "Show less" : "Show all";
    button.setAttribute("aria-expanded", String(on));
  }

  function reach(n) {
    if (!marking.isOf(n)) marking.stop();
    current = n;
    [...$("items").children].forEach((box, i) => {
      box.classList.toggle("current", i === n);
      if (box.classList.contains("item")) box.tabIndex = i === n ? 0 : -1;
    });
  }

  function focus(n) {
    const box = card(n);
    if (!box) return;
    reach(n);
    box.focus({ preventScroll: true });
    const { top, bottom } = box.getBoundingClientRect();
    const begin = $("query").parentNode.offsetHeight, end = innerHeight - $("next").parentNode.offsetHeight; // between the bars
    if (top < begin || bottom > end) box.scrollIntoView({ block: bottom - top > end - begin ? "start" : "nearest" });
  }

  // --- Answers

  const draftOf = (item) => {
    const own = item.label || drafts.get(item.key + sheet.query) || {};
    return { note: own.note || "", quotes: own.quotes || [] };
  };

  async function answer(n, given) {
    const item = items()[n];
    if (!item) return;
    reach(n);
    await send(n, { ...draftOf(item), ...given });
    say(`Item ${n + 1}: ${words(item.label)}`);
    await moveOn(n);
  }

  // Store an answer, and show it.
  async function send(n, { answer, grade = null, note, quotes }) {
    const own = sheet, item = own.items[n], box = card(n);
    box.setAttribute("aria-busy", "true");
    try {
      const stored = await store(place(), "/label/answer", {
        id: id(), by, query: own.query, item: item.key, answer, grade, note,
        quotes: quotes.map(({ start, end }) => ({ start, end })),
      });
      if (drafts.delete(item.key + own.query)) keepDrafts();
      item.label = stored.label;
      item.model = stored.model;
      own.next = stored.next;
      own.last = stored.label.number;
      showProgress(stored.progress);
      standing.soon();
    } finally {
      box.removeAttribute("aria-busy");
    }
    if (sheet === own) redraw(n);
  }

  async function moveOn(n) {
    const list = items();
    const after = [...list.keys()].map((i) => (n + 1 + i) % list.length).find((i) => !list[i].label);
    if (after !== undefined) {
      focus(after);
      return;
    }
    await open(sheet.next);
    if (sheet) say(`Next query: ${asked(sheet)}`);
  }

  async function undo() {
    const last = sheet ? sheet.last : (await lastNumber());
    if (!last) {
      say("There is nothing to undo.");
      return;
    }
    const taken = await store(place(), "/label/undo", { id: id(), by, number: last });
    if (taken.sheet === null) {
      await open(sheet ? sheet.number : about.sheets - 1);
      say(taken.item !== null ? "Your last answer is taken back; this order of the work does not have its item."
        : sheet.last ? "Another page of yours has answered since; press u again." : "There is nothing to undo.");
      return;
    }
    await open(taken.sheet, taken.item);
    say("Your last answer is taken back.");
  }

  const lastNumber = async () => (await ask(path("sheet/0"))).last;

  // Notes and quotes: of an item that is graded they are stored at once; before, they wait for the grade.
  async function change(n, changed) {
    const item = items()[n];
    const own = { ...draftOf(item), ...changed };
    if (item.label) {
      await send(n, { answer: item.label.answer, grade: item.label.grade, ...own });
    } else {
      drafts.set(item.key + sheet.query, own);
      keepDrafts();
      redraw(n);
    }
  }

  const keepDrafts = () => sessionStorage.setItem(`${place()} drafts`, JSON.stringify([...drafts]));

  function takeDrafts() {
    drafts.clear();
    try {
      for (const [key, own] of JSON.parse(sessionStorage.getItem(`${place()} drafts`) || "[]")) drafts.set(key, own);
    } catch { /* none */ }
  }

  const removeQuote = (n, q) => change(n, { quotes: draftOf(items()[n]).quotes.filter((_, i) => i !== q) });

  async function note() {
    const n = current, item = items()[n], own = sheet;
    if (!item || card(n).querySelector("textarea")) return;
    const field = make("textarea", { rows: 2, maxlength: 5000, "aria-label": "Note", dir: "auto" });
    field.value = draftOf(item).note;
    const close = (keep) => {
      form.remove();
      if (keep && sheet === own) queue(() => change(n, { note: field.value.trim() }));
      focus(n);
    };
    const form = make("form.writing", { onsubmit: (event) => { event.preventDefault(); close(true); } }, field,
      make("button", { type: "submit" }, "Save the note"), make("button", { type: "button", onclick: () => close(false) }, "Cancel"));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close(false);
      if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); close(true); }
    });
    card(n).append(form);
    field.focus();
  }

  function showId(n = current) {
    const item = items()[n], line = card(n).querySelector(".id");
    line.hidden = !line.hidden;
    line.textContent = [item.id && `id ${item.id}`, item.doc && `document ${item.doc}`].filter(Boolean).join(" · ") || "It has no id.";
  }

  // --- Keys and buttons

  const go = (step) => queue(() => {
    const to = (sheet ? sheet.number : about.sheets) + step;
    return to >= 0 && to < about.sheets ? open(to) : null;
  });
  const acts = {
    previous: () => go(-1), next: () => go(1), undo: () => queue(undo), list: () => lists.list((sheet ? sheet.number : 0) - 10),
    search: lists.search, help: lists.help,
  };
  for (const [name, act] of Object.entries(acts)) $(name).addEventListener("click", act);

  const guideline = () => {
    if (!about.guideline) { say("There is no guideline."); return; }
    const pane = $("guideline-pane");
    pane.open = !pane.open;
    if (pane.open) pane.scrollIntoView({ block: "nearest" });
  };
  const now = (given) => queue(() => answer(current, given));
  const keys = {
    s: () => now({ answer: "skip" }), " ": () => now({ answer: "skip" }), d: () => now({ answer: "cannot tell" }),
    u: acts.undo, n: note, m: () => marking.mark(current), i: () => items().length && showId(), l: acts.list, "/": acts.search, "?": acts.help, g: guideline,
    j: () => focus(current + 1), ArrowDown: () => focus(current + 1), k: () => focus(current - 1), ArrowUp: () => focus(current - 1),
    ArrowLeft: acts.previous, ArrowRight: acts.next, Enter: () => items().length && expand(current),
    Backspace: () => { const own = items().length && draftOf(items()[current]).quotes.length; if (own) queue(() => removeQuote(current, own - 1)); },
  };

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || $("work").hidden || document.querySelector("dialog[open]")) return;
    if (target.closest("input, textarea, select, [contenteditable]")) return;
    if ((key === "Enter" || key === " ") && target.closest("button, a, summary")) return;
    let act = marking.act(key);
    if (!act && scale.some((one) => String(one.grade) === key)) {
      marking.stop();
      if (event.repeat) return;
      act = () => now({ answer: "grade", grade: Number(key) });
    }
    if (!act && !marking.isOf(current) && !(event.repeat && !key.startsWith("Arrow") && !"jk".includes(key))) act = keys[key] ?? null;
    if (act) {
      event.preventDefault();
      act();
    }
  });

  start();
})();
