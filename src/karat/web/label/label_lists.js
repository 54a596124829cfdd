// The dialogs of the labelling page: the list of queries, the search in the pool, and the help. `open` shows the query
// that was chosen; `closed` gives the focus back to the items.
const labelLists = ({ path, open, closed }) => {
  const { $, make, plural, ask, problem, asked } = labelling;

  const dialog = (name) => $(`${name}-dialog`);
  for (const box of document.querySelectorAll("dialog")) {
    box.querySelector(".close").addEventListener("click", () => box.close());
    box.addEventListener("close", closed);
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault(); // a search field would only be cleared
      box.close();
    });
  }
  const choice = (found, state) => make("li", {}, make("button.jump", { type: "button", onclick: () => {
    dialog(found.item === undefined ? "list" : "search").close();
    open(found.number, found.item ?? null);
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

  const search = () => {
    dialog("search").showModal();
    $("wanted").focus();
  };
  return { list, search, help: () => dialog("help").showModal() };
};
