// The labelling page: one query with its items. A key grades the item that has the focus; the focus moves on after the
// server has stored the answer. Keys that come faster wait in a line, and are forgotten if one of them fails.
(() => {
  if (!document.body.classList.contains("screen-label")) return;
  const { $, make, say, plural, id, ask, problem, store, leftover, textOf, passage, asked, Refused } = labelling;

  let by = "", scale = [], about = null, sheet = null, current = 0, marking = null;
  const drafts = new Map(); // notes and quotes of items that are not graded yet
  const place = () => `karat-label ${about.pool} ${by}`; // of what the browser keeps for a person
  const path = (rest) => `/label/${rest}${rest.includes("?") ? "&" : "?"}by=${encodeURIComponent(by)}`;
  const items = () => (sheet ? sheet.items : []);
  const card = (n) => $("items").children[n];

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
    refresh();
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
    endMarking();
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
    paint();
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
      item.text === null ? null : other("mark", "Mark a passage", () => { focus(n); selected(n); mark(); }),
      other("note", state && state.note ? "Change the note" : "Note", () => { focus(n); note(); }),
      other("id", "Id", () => { focus(n); showId(); }));
    const quotes = make("ul.quotes", { "aria-label": "Quotes" }, ...((state && state.quotes) || []).map((quote, q) =>
      make("li", {}, make("q", { dir: "auto" }, quote.text), make("button", {
        type: "button", "aria-label": `Remove quote ${q + 1}`, onclick: () => queue(() => removeQuote(n, q)) }, "✕"))));
    const cut = item.length ? make("p.note", {}, `Only the begin is stored: the whole text has ${item.length.toLocaleString("en")} characters.`) : null;
    const written = state && state.note ? make("p.note.own", { dir: "auto" }, `Note: ${state.note}`) : null;
    const model = item.model === null || item.model === undefined ? null : make("p.note", {}, `The model’s opinion: ${item.model}`);
    const box = make("article.item", { tabindex: n === current ? 0 : -1, "aria-labelledby": `item-${n}`, "data-key": item.key },
      heading, text, whole, cut, make("p.note.id", { hidden: true }), quotes.children.length ? quotes : null, written, model, grades, more);
    box.classList.toggle("answered", Boolean(item.label));
    box.addEventListener("focusin", () => reach(n));
    text.addEventListener("mouseup", () => setTimeout(() => selected(n)));
    text.addEventListener("click", (event) => { if (marking && marking.item === n) point(event.clientX, event.clientY); });
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
    paint();
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
    if (marking && marking.item !== n) endMarking();
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
      soon();
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

  // Places are counted in characters, as Python does; those of a script are halves of the rarer ones.
  const characters = (text, place) => [...text.slice(0, place)].length;
  const units = (text, place) => [...text].slice(0, place).join("").length;

  function addQuote(n, start, end) {
    const text = textOf(items()[n]);
    while (start < end && /\s/.test(text[start])) start += 1;
    while (end > start && /\s/.test(text[end - 1])) end -= 1;
    if (start >= end) return;
    const quote = { start: characters(text, start), end: characters(text, end), text: text.slice(start, end) };
    const { quotes } = draftOf(items()[n]);
    if (quotes.some((one) => one.start === quote.start && one.end === quote.end)) return;
    const all = [...quotes, quote].sort((a, b) => a.start - b.start);
    queue(() => change(n, { quotes: all }));
    say(`Quote added: ${quote.text}`);
  }

  function selected(n) {
    const selection = getSelection(), item = items()[n];
    if (marking || selection.isCollapsed || !item || item.text === null) return;
    const range = selection.getRangeAt(0), node = card(n).querySelector(".text").firstChild;
    if (range.startContainer !== node && range.endContainer !== node) return;
    const start = range.startContainer === node ? range.startOffset : 0;
    const end = range.endContainer === node ? range.endOffset : node.length;
    selection.removeAllRanges();
    addQuote(n, start, end);
  }

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

  // --- Marking by words

  function mark() {
    const item = items()[current];
    if (!item || item.text === null) return;
    if (!marking) {
      const text = item.text, found = [...text.matchAll(/\S+/gu)].map((one) => [one.index, one.index + one[0].length]);
      if (!found.length) {
        say("There are no words to mark.");
        return;
      }
      expand(current, true);
      marking = { item: current, words: found, at: 0, from: null };
      card(current).classList.add("marking");
      say("Marking: tap its first and its last word; or move by words with the arrows, m begins and ends, Escape cancels.");
    } else if (marking.from === null) {
      marking.from = marking.at;
      say("The quote begins here: arrows extend it, m or Enter ends it.");
    } else {
      const [a, b] = [marking.from, marking.at].sort((x, y) => x - y), { words: all, item: n } = marking;
      endMarking();
      addQuote(n, all[a][0], all[b][1]);
    }
    paint();
  }

  function endMarking() {
    if (!marking) return;
    if (card(marking.item)) card(marking.item).classList.remove("marking");
    marking = null;
    paint();
  }

  const rangeOf = (n, start, end) => {
    const node = card(n).querySelector(".text").firstChild, range = new Range();
    range.setStart(node, start);
    range.setEnd(node, Math.min(end, node.length));
    return range;
  };

  function step(key) {
    const { words: all, item: n } = marking;
    const to = (at) => { marking.at = Math.max(0, Math.min(at, all.length - 1)); };
    if (key === "ArrowRight") to(marking.at + 1);
    else if (key === "ArrowLeft") to(marking.at - 1);
    else if (key === "Home") to(0);
    else if (key === "End") to(all.length - 1);
    else {
      const box = (at) => rangeOf(n, ...all[at]).getBoundingClientRect(), own = box(marking.at);
      const forward = key === "ArrowDown" ? 1 : -1;
      let at = marking.at + forward, line = null, best = marking.at;
      for (; at >= 0 && at < all.length; at += forward) {
        const here = box(at);
        if (Math.abs(here.top - own.top) < own.height / 2) continue;
        line = line ?? here.top;
        if (Math.abs(here.top - line) > own.height / 2) break;
        if (best === marking.at || Math.abs(here.left - own.left) < Math.abs(box(best).left - own.left)) best = at;
      }
      to(best);
    }
    const [start, end] = all[marking.at];
    say(items()[n].text.slice(start, end));
    const seen = rangeOf(n, start, end).getBoundingClientRect();
    if (seen.top < 60 || seen.bottom > innerHeight - 60) scrollBy(0, seen.top - innerHeight / 2);
    paint();
  }

  // The word at a point: the first one begins the quote, the second one ends it.
  function point(x, y) {
    const at = document.caretPositionFromPoint ? document.caretPositionFromPoint(x, y) : document.caretRangeFromPoint(x, y);
    const place = at && (at.offset ?? at.startOffset);
    const found = marking.words.findIndex(([, end]) => place <= end);
    if (found < 0) return;
    marking.at = found;
    mark();
  }

  // Quotes and the marked words are highlighted without a change of the text.
  function paint() {
    if (!globalThis.Highlight || !CSS.highlights) return;
    const quotes = items().flatMap((item, n) => draftOf(item).quotes.map((one) =>
      rangeOf(n, units(textOf(item), one.start), units(textOf(item), one.end))));
    CSS.highlights.set("karat-quote", new Highlight(...quotes));
    const marked = [];
    if (marking) {
      const [a, b] = [marking.from ?? marking.at, marking.at].sort((x, y) => x - y);
      marked.push(rangeOf(marking.item, marking.words[a][0], marking.words[b][1]));
    }
    CSS.highlights.set("karat-marking", new Highlight(...marked));
  }

  // --- Lists

  const dialog = (name) => $(`${name}-dialog`);
  for (const box of document.querySelectorAll("dialog")) {
    box.querySelector(".close").addEventListener("click", () => box.close());
    box.addEventListener("close", () => focus(current));
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault(); // a search field would only be cleared
      box.close();
    });
  }
  const choice = (found, state) => make("li", {}, make("button.jump", { type: "button", onclick: () => {
    dialog(found.item === undefined ? "list" : "search").close();
    queue(() => open(found.number, found.item ?? null));
  } }, make("span", { dir: "auto" }, asked(found)), make("span.note", { dir: "auto" }, state)));

  let listed = 0;
  async function list(begin) {
    try {
      const found = await ask(path(`sheets?begin=${Math.max(begin, 0)}`));
      listed = found.begin;
      $("sheets").start = found.begin + 1;
      $("sheets").replaceChildren(...found.sheets.map((one) =>
        choice(one, one.done === one.items ? `done, ${plural(one.items, "item")}` : `${one.done} of ${plural(one.items, "item")}`)));
      $("earlier").disabled = found.begin === 0;
      $("later").disabled = found.begin + found.sheets.length >= found.of;
      if (!dialog("list").open) dialog("list").showModal();
    } catch (error) {
      problem(error.message);
    }
  }
  $("earlier").addEventListener("click", () => list(listed - 50));
  $("later").addEventListener("click", () => list(listed + 50));

  $("search-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { found, more } = await ask(path(`search?text=${encodeURIComponent($("wanted").value)}`));
      $("found-note").textContent = found.length ? `${more ? "The first " : ""}${plural(found.length, "item")}` : "Nothing has these words.";
      $("found").replaceChildren(...found.map((one) => choice(one, one.begin)));
    } catch (error) {
      $("found-note").textContent = error.message;
    }
  });

  // --- The column beside the items

  const number = (value) => (value === null ? "–" : value.toFixed(2).replace("-", "−"));
  const STOP = {
    decided: "Enough: the comparison is decided. You may stop.",
    equal: "Enough: the runs are equal within ±0.02. You may stop.",
    precise: "Enough: the difference is known within ±0.02. You may stop.",
    all: "Everything that can change the comparison is labelled.",
    several: "Enough for all comparisons. You may stop.",
  };
  const advice = ({ stop, more }, what) => {
    if (stop === "queries") return `The queries themselves now vary more than the missing labels; about ${plural(more, "more label")} would still decide ${what} on these queries.`;
    return stop ? STOP[stop] : `About ${plural(more, "more label")} would decide ${what}.`;
  };

  async function refresh() {
    clearTimeout(refresh.timer);
    try {
      if (!document.hidden && !$("beside").hidden) {
        const { agreement, choice: how } = await ask("/label/standing");
        showAgreement(agreement);
        if (how) {
          $("stop").textContent = advice(how, how.metric);
          $("stop").classList.toggle("enough", Boolean(how.stop) && how.stop !== "queries");
        }
        if (how && $("estimate-pane").open) showEstimates((await ask("/label/estimate")).estimates);
      }
    } catch { /* the next answer says what is wrong */ }
    refresh.timer = setTimeout(refresh, 4000);
  }

  // Soon after an answer, but not after each of many.
  function soon() {
    clearTimeout(refresh.timer);
    refresh.timer = setTimeout(refresh, 1000);
  }

  function showAgreement({ people, items: shared, differ, unsettled, alpha, kappas }) {
    const parts = [make("ul.people", {}, ...people.map((one) => make("li", {}, make("bdi", {}, one.name), `: ${plural(one.labels, "grade")}`)))];
    if (!people.length) parts.push(make("p.note", {}, "Nobody has graded an item yet."));
    else if (!shared) parts.push(make("p.note", {}, "Agreement is shown once two people have graded the same item."));
    else {
      parts.push(make("p", {}, `Alpha ${number(alpha)} on ${plural(shared, "item")} with two or more grades`));
      parts.push(...kappas.map((one) => make("p", {}, "Kappa of ", make("bdi", {}, one.first), " and ", make("bdi", {}, one.second),
        `: ${number(one.kappa)} (${plural(one.items, "item")})`)));
    }
    if (differ) parts.push(make("p", {}, make("a", { href: "/label/disagreements" }, plural(differ, "disagreement")),
      unsettled < differ ? `, ${unsettled.toLocaleString("en")} not settled` : ""));
    $("agreement").replaceChildren(...parts);
  }

  const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
  function showEstimates(found) {
    $("estimate").replaceChildren(...found.map((one) => make("div", {},
      make("p", {}, make("bdi", {}, one.run), " minus ", make("bdi", {}, one.baseline), `, ${about.metric}:`),
      make("p.big", {}, signed(one.difference)),
      make("p", {}, `95 % interval on these queries ${signed(one.low)} to ${signed(one.high)}`),
      make("p.note", {}, `at every look ${signed(one.always_low)} to ${signed(one.always_high)}` +
        (one.total_low === null ? "" : `; on queries like these ${signed(one.total_low)} to ${signed(one.total_high)}`)),
      one.drawn < one.fewest && one.stop !== "all" ? make("p", {}, `Fewer than ${one.fewest} ${one.unit === "item" ? "items" : "queries"} drawn and answered: it says little yet.`) : null,
      make("p.note", {}, `${plural(one.labels + one.known, "label")}${one.known ? `, ${one.labels.toLocaleString("en")} of them drawn` : ""}. ${advice(one, "it")}`),
      one.without_relevant ? make("p.note", {}, `${one.without_relevant.toLocaleString("en")} of ${one.queries.toLocaleString("en")} queries ${one.without_relevant === 1 ? "has" : "have"} no relevant item so far: without one, a query counts as a difference of 0 here, and karat eval leaves it out.`) : null)));
  }
  $("estimate-pane").addEventListener("toggle", refresh);

  // --- Keys and buttons

  const go = (step) => queue(() => {
    const to = (sheet ? sheet.number : about.sheets) + step;
    return to >= 0 && to < about.sheets ? open(to) : null;
  });
  const acts = {
    previous: () => go(-1), next: () => go(1), undo: () => queue(undo), list: () => list((sheet ? sheet.number : 0) - 10),
    search: () => { dialog("search").showModal(); $("wanted").focus(); }, help: () => dialog("help").showModal(),
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
    u: acts.undo, n: note, m: mark, i: () => items().length && showId(), l: acts.list, "/": acts.search, "?": acts.help, g: guideline,
    j: () => focus(current + 1), ArrowDown: () => focus(current + 1), k: () => focus(current - 1), ArrowUp: () => focus(current - 1),
    ArrowLeft: acts.previous, ArrowRight: acts.next, Enter: () => items().length && expand(current),
    Backspace: () => { const own = items().length && draftOf(items()[current]).quotes.length; if (own) queue(() => removeQuote(current, own - 1)); },
  };

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || $("work").hidden || document.querySelector("dialog[open]")) return;
    if (target.closest("input, textarea, select, [contenteditable]")) return;
    if ((key === "Enter" || key === " ") && target.closest("button, a, summary")) return;
    let act = null;
    if (marking) {
      if (key.startsWith("Arrow") || key === "Home" || key === "End") act = () => step(key);
      else if (key === "Enter" || key === " " || key === "m") act = mark;
      else if (key === "Escape") act = endMarking;
    }
    if (!act && scale.some((one) => String(one.grade) === key)) {
      endMarking();
      if (event.repeat) return;
      act = () => now({ answer: "grade", grade: Number(key) });
    }
    if (!act && !marking && !(event.repeat && !key.startsWith("Arrow") && !"jk".includes(key))) act = keys[key] ?? null;
    if (act) {
      event.preventDefault();
      act();
    }
  });

  start();
})();
