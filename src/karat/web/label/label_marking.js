// Quotes: passages of an item's text, marked by a selection, by two taps or by words with the keys, and highlighted.
// The page keeps the quotes of each item; `keep` stores them.
const labelMarking = ({ items, card, expand, quotesOf, keep }) => {
  const { say, textOf } = labelling;
  let marking = null; // the item that is marked by words: its words, the one at hand, and the one that begins the quote

  // Places are counted in characters, as Python does; those of a script are halves of the rarer ones.
  const characters = (text, place) => [...text.slice(0, place)].length;
  const units = (text, place) => [...text].slice(0, place).join("").length;

  function add(n, start, end) {
    const text = textOf(items()[n]);
    while (start < end && /\s/.test(text[start])) start += 1;
    while (end > start && /\s/.test(text[end - 1])) end -= 1;
    if (start >= end) return;
    const quote = { start: characters(text, start), end: characters(text, end), text: text.slice(start, end) };
    const quotes = quotesOf(n);
    if (quotes.some((one) => one.start === quote.start && one.end === quote.end)) return;
    keep(n, [...quotes, quote].sort((a, b) => a.start - b.start));
    say(`Quote added: ${quote.text}`);
  }

  // What is selected in the text of an item becomes a quote.
  function selected(n) {
    const selection = getSelection(), item = items()[n];
    if (marking || selection.isCollapsed || !item || item.text === null) return;
    const range = selection.getRangeAt(0), node = card(n).querySelector(".text").firstChild;
    if (range.startContainer !== node && range.endContainer !== node) return;
    const start = range.startContainer === node ? range.startOffset : 0;
    const end = range.endContainer === node ? range.endOffset : node.length;
    selection.removeAllRanges();
    add(n, start, end);
  }

  // --- By words

  // The first time marking starts, the second time the quote begins, the third time it ends.
  function mark(n) {
    const item = items()[n];
    if (!item || item.text === null) return;
    if (!marking) {
      const text = item.text, found = [...text.matchAll(/\S+/gu)].map((one) => [one.index, one.index + one[0].length]);
      if (!found.length) {
        say("There are no words to mark.");
        return;
      }
      expand(n, true);
      marking = { item: n, words: found, at: 0, from: null };
      card(n).classList.add("marking");
      say("Marking: tap its first and its last word; or move by words with the arrows, m begins and ends, Escape cancels.");
    } else if (marking.from === null) {
      marking.from = marking.at;
      say("The quote begins here: arrows extend it, m or Enter ends it.");
    } else {
      const [a, b] = [marking.from, marking.at].sort((x, y) => x - y), { words: all } = marking;
      stop();
      add(n, all[a][0], all[b][1]);
    }
    paint();
  }

  function stop() {
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
    else to(lineAway(key === "ArrowDown" ? 1 : -1));
    const [start, end] = all[marking.at];
    say(items()[n].text.slice(start, end));
    const seen = rangeOf(n, start, end).getBoundingClientRect();
    if (seen.top < 60 || seen.bottom > innerHeight - 60) scrollBy(0, seen.top - innerHeight / 2);
    paint();
  }

  // The word of the line above or below that is nearest to the one at hand.
  function lineAway(forward) {
    const { words: all, item: n } = marking;
    const box = (at) => rangeOf(n, ...all[at]).getBoundingClientRect(), own = box(marking.at);
    let line = null, best = marking.at;
    for (let at = marking.at + forward; at >= 0 && at < all.length; at += forward) {
      const here = box(at);
      if (Math.abs(here.top - own.top) < own.height / 2) continue;
      line = line ?? here.top;
      if (Math.abs(here.top - line) > own.height / 2) break;
      if (best === marking.at || Math.abs(here.left - own.left) < Math.abs(box(best).left - own.left)) best = at;
    }
    return best;
  }

  // The word at a point: the first one begins the quote, the second one ends it.
  function point(x, y) {
    const at = document.caretPositionFromPoint ? document.caretPositionFromPoint(x, y) : document.caretRangeFromPoint(x, y);
    const place = at && (at.offset ?? at.startOffset);
    const found = marking.words.findIndex(([, end]) => place <= end);
    if (found < 0) return;
    marking.at = found;
    mark(marking.item);
  }

  // What a key does while a passage is marked; null if it is no key of this.
  function act(key) {
    if (!marking) return null;
    if (key.startsWith("Arrow") || key === "Home" || key === "End") return () => step(key);
    if (key === "Enter" || key === " " || key === "m") return () => mark(marking.item);
    return key === "Escape" ? stop : null;
  }

  const isOf = (n) => marking !== null && marking.item === n;

  // Quotes and the marked words are highlighted without a change of the text.
  function paint() {
    if (!globalThis.Highlight || !CSS.highlights) return;
    const quotes = items().flatMap((item, n) => quotesOf(n).map((one) =>
      rangeOf(n, units(textOf(item), one.start), units(textOf(item), one.end))));
    CSS.highlights.set("karat-quote", new Highlight(...quotes));
    const marked = [];
    if (marking) {
      const [a, b] = [marking.from ?? marking.at, marking.at].sort((x, y) => x - y);
      marked.push(rangeOf(marking.item, marking.words[a][0], marking.words[b][1]));
    }
    CSS.highlights.set("karat-marking", new Highlight(...marked));
  }

  return { selected, mark, act, point, isOf, stop, paint };
};
