// The page of disagreements: items to which people gave different grades, and buttons that settle them.
(() => {
  if (!document.body.classList.contains("screen-disagreements")) return;
  const { $, make, say, id, ask, problem, passage, asked } = labelling;

  function draw(one, about, again) {
    const settled = make("p.answer", {}, one.settled === null ? "Not settled" : `Settled: ${one.settled.grade ?? "can’t tell, so it is not in the gold"}`);
    const grades = make("ul.people", {}, ...one.grades.map((own) => make("li", {}, make("bdi", {}, own.by), ": ", make("b", {}, String(own.grade)),
      own.note ? make("span.note", { dir: "auto" }, ` ${own.note}`) : null)));
    const buttons = make("div.grades", { role: "group", "aria-label": "Settle as" }, ...[...about.scale, { grade: null, words: "Can’t tell" }].map(({ grade, words }) =>
      make("button", { type: "button", "aria-pressed": String(one.settled !== null && one.settled.grade === grade), onclick: async () => {
        try {
          await ask("/label/settle", { id: id(), by: about.by, query: one.query, item: one.item.key, answer: grade === null ? "cannot tell" : "grade", grade });
          problem("");
          say(`Settled as ${grade ?? "can’t tell"}.`);
          await again(one.item.key + one.query);
        } catch (error) {
          problem(`Not stored: ${error.message}`);
        }
      } }, grade === null ? null : make("b", {}, String(grade)), ` ${words}`)));
    return make("article.item.open", { tabindex: -1, "data-key": one.item.key + one.query },
      make("h2", { dir: "auto" }, asked(one)), passage(one.item), grades, settled, buttons);
  }

  async function show(key = null) {
    try {
      const [about, { items }] = await Promise.all([ask("/label/work"), ask("/label/differing")]);
      if (!about.by) {
        location.href = "/label";
        return;
      }
      const drawn = items.map((one) => draw(one, about, show));
      $("differing").replaceChildren(...(drawn.length ? drawn : [make("p", {}, "People agree on every item that two or more of them have graded.")]));
      const same = key && drawn.find((one) => one.dataset.key === key);
      if (same) same.focus();
    } catch (error) {
      problem(error.message);
    }
  }

  show();
})();
