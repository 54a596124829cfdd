// Shared by the pages of labelling: elements whose texts stay text, requests, and a write that is never lost or doubled.
const labelling = (() => {
  const $ = (id) => document.getElementById(id);

  // An element; a text among its children can never become markup.
  function make(tag, about = {}, ...inside) {
    const [name, ...classes] = tag.split(".");
    const element = document.createElement(name);
    element.classList.add(...classes);
    for (const [key, value] of Object.entries(about)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...inside.filter((one) => one !== null && one !== undefined));
    return element;
  }

  const say = (words) => { const said = $("said"); if (said) said.textContent = words; };
  const plural = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const id = () => [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");

  class Refused extends Error {
    constructor(status, words) { super(words); this.status = status; }
  }

  async function ask(path, body) {
    const sent = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(path, { credentials: "same-origin", signal: AbortSignal.timeout(20000), ...sent });
    let content = null;
    try { content = await answer.json(); } catch { /* an answer that is cut off is none */ }
    if (answer.ok && content !== null) return content;
    if (answer.ok) throw new TypeError("cut off");
    const hint = content && content.hint ? ` Try: ${content.hint}` : "";
    throw new Refused(answer.status, ((content && content.detail) || `The server answered ${answer.status}.`) + hint);
  }

  const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const problem = (words) => {
    const box = $("problem");
    box.textContent = words;
    box.hidden = !words;
  };

  const GONE = "The server does not answer. Nothing is lost: your last answer is sent again until it is stored. " +
    "If karat label was ended, start it again and open the address that it prints.";
  const STALE = "This page belongs to an earlier start of karat label. Open the address that it printed now; " +
    "your last answer is sent again there.";

  // Send until it is stored. The same id makes a repetition harmless. What waits is kept by the browser, so that it
  // survives a reload; only a refusal (which the person must see) ends the repetition.
  async function store(place, path, body) {
    localStorage.setItem(place, JSON.stringify({ path, body }));
    for (let pause = 300; ; pause = Math.min(2 * pause, 3000)) {
      try {
        const answer = await ask(path, body);
        localStorage.removeItem(place);
        problem("");
        return answer;
      } catch (error) {
        const refused = error instanceof Refused;
        document.dispatchEvent(new Event("karat-trouble"));
        if (refused && error.status < 500 && ![403, 408, 429].includes(error.status)) {
          localStorage.removeItem(place);
          problem(`Not stored: ${error.message}`);
          throw error;
        }
        problem(!refused ? GONE : error.status === 403 ? STALE : `Not stored yet, and sent again: ${error.message}`);
        await wait(pause);
      }
    }
  }

  // An answer that an earlier page could not store.
  async function leftover(place) {
    const kept = localStorage.getItem(place);
    if (!kept) return;
    try {
      const { path, body } = JSON.parse(kept);
      await store(place, path, body);
    } catch {
      localStorage.removeItem(place);
    }
  }

  // The text of an item: its whole text is one text node, cut by style alone, so that places in it are simple.
  const textOf = (item) => item.text ?? item.doc ?? item.id ?? "";
  function passage(item) {
    const text = make("p.text", { dir: "auto" }, textOf(item));
    if (item.text === null) text.classList.add("bare");
    else text.classList.toggle("blank", !item.text.trim());
    return text;
  }

  // The words of a query; its id if it has none.
  const asked = ({ text, query }) => (text ?? "").trim() ? text : query;

  return { $, make, say, plural, id, ask, problem, store, leftover, textOf, passage, asked, Refused };
})();
