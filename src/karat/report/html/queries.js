// Search, filters, sort and paging of the table of queries of a report. Without this script the page shows the first rows.
(() => {
  const at = (id) => document.getElementById(id);
  if (!at("data")) return;

  const data = JSON.parse(at("data").textContent);
  const table = at("all"), body = table.tBodies[0], more = at("more"), search = at("search"), count = at("count");
  const rows = [...body.rows];
  const order = new Intl.Collator(undefined, { numeric: true });
  const chips = at("chips"), heads = [...table.tHead.rows[0].cells], names = heads.map((head) => head.textContent);
  let shown = data.page, listed = [], only = [];
  let column = heads.findIndex((head) => head.hasAttribute("aria-sort"));
  let down = heads[column].getAttribute("aria-sort") === "descending";

  // Packed trees: a list is an element, its tag first, then its attributes if it has any; a string is a text;
  // a number is the number of a text.
  // Texts only ever become text nodes.
  const text = (t) => (typeof t === "number" ? data.texts[t] : t);
  function node(t) {
    if (!Array.isArray(t)) return document.createTextNode(text(t));
    const [name, ...classes] = data.tags[t[0]].split(".");
    const element = document.createElement(name);
    if (classes.length) element.className = classes.join(" ");
    const given = t[1] instanceof Object && !Array.isArray(t[1]) ? t[1] : null;
    for (const key in given) element.setAttribute(key, given[key]);
    for (let i = given ? 2 : 1; i < t.length; i++) element.append(node(t[i]));
    return element;
  }

  function row(i) {
    if (!rows[i]) {
      rows[i] = node(data.rows[i - data.page]);
      rows[i].id = "row-" + i;
    }
    return rows[i];
  }

  const words = data.keys.map(([given]) => given.map(text).join("\n").toLowerCase());
  const value = (i) => data.keys[i][1][column];

  // Undefined values come last in either direction.
  function compare(a, b) {
    const x = value(a), y = value(b);
    if (x === null || y === null) return (x === null) - (y === null) || a - b;
    const way = typeof x === "string" ? order.compare(x, y) : x - y;
    return (down ? -way : way) || a - b;
  }

  // A filter is about a score, from low to below high or exactly low, or about the numbers that a row carries.
  function matches(i, number) {
    const { column: of, low, high } = data.filters[number];
    if (of === undefined) return data.keys[i][2].includes(number);
    const x = data.keys[i][1][of];
    return x !== null && (low === high ? x === low : low <= x && x < high);
  }

  function list() {
    const wanted = search.value.trim().toLowerCase().split(/\s+/);
    listed = [];
    for (let i = 0; i < words.length; i++) {
      if (wanted.every((w) => words[i].includes(w)) && only.every((number) => matches(i, number))) listed.push(i);
    }
    listed.sort(compare);
    draw();
  }

  function draw() {
    const few = listed.slice(0, shown);
    body.replaceChildren(...few.map(row));
    more.hidden = few.length === listed.length;
    const all = listed.length === words.length ? "" : ` matching, of ${words.length.toLocaleString("en")}`;
    count.textContent = `${few.length.toLocaleString("en")} of ${listed.length.toLocaleString("en")} queries${all}`;
  }

  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      down = column === i && !down;
      column = i;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const ways = i === 0 ? ["A to Z", "Z to A"] : ["lowest first", "highest first"];
      at("order").textContent = `Sorted by ${names[i]}, ${ways[Number(down)]}.`;
      shown = data.page;
      list();
    });
  });

  // The filters are in the address: #only-3,7. A link adds its filter, and replaces one of the same kind.
  const group = (number) => data.filters[number].group;

  function choose(numbers) {
    only = numbers.filter((number) => number in data.filters);
    chips.replaceChildren(...only.map((number) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.textContent = data.filters[number].words + " ×";
      chip.setAttribute("aria-label", `Remove the filter: ${data.filters[number].words}`);
      chip.addEventListener("click", () => go(only.filter((other) => other !== number)));
      return chip;
    }));
    shown = data.page;
    list();
  }

  function go(numbers) {
    history.pushState(null, "", numbers.length ? "#only-" + numbers.join(",") : "#queries");
    choose(numbers);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#only-"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const number = Number(link.getAttribute("href").slice(6));
    go([...only.filter((other) => group(other) !== group(number)), number]);
    at("queries").scrollIntoView();
  });

  // A link to a query opens it; if the query is not listed, it is listed alone.
  function follow() {
    const i = /^#row-\d+$/.test(location.hash) ? Number(location.hash.slice(5)) : -1;
    if (!(i in words)) return;
    if (!row(i).isConnected) {
      only = [];
      chips.replaceChildren();
      listed = [i];
      search.value = data.keys[i][1][0];
      draw();
    }
    row(i).querySelector("details").open = true;
    row(i).scrollIntoView();
  }

  search.addEventListener("input", () => { shown = data.page; list(); });
  search.form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { shown += data.page; draw(); });
  function read() {
    const given = /^#only-([\d,]+)$/.exec(location.hash);
    if (given || location.hash === "" || location.hash === "#queries") choose(given ? given[1].split(",").map(Number) : []);
    if (given) at("queries").scrollIntoView();
    follow();
  }

  window.addEventListener("hashchange", read);
  window.addEventListener("popstate", read);
  search.form.hidden = false;
  list();
  read();
})();
