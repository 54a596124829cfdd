// The column beside the items: how far people agree, and whether the labels are enough to compare the runs.
const labelStanding = (metric) => {
  const { $, make, plural, ask } = labelling;

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
      make("p", {}, make("bdi", {}, one.run), " minus ", make("bdi", {}, one.baseline), `, ${metric()}:`),
      make("p.big", {}, signed(one.difference)),
      make("p", {}, `95 % interval on these queries ${signed(one.low)} to ${signed(one.high)}`),
      make("p.note", {}, `at every look ${signed(one.always_low)} to ${signed(one.always_high)}` +
        (one.total_low === null ? "" : `; on queries like these ${signed(one.total_low)} to ${signed(one.total_high)}`)),
      one.drawn < one.fewest && one.stop !== "all" ? make("p", {}, `Fewer than ${one.fewest} ${one.unit === "item" ? "items" : "queries"} drawn and answered: it says little yet.`) : null,
      make("p.note", {}, `${plural(one.labels + one.known, "label")}${one.known ? `, ${one.labels.toLocaleString("en")} of them drawn` : ""}. ${advice(one, "it")}`),
      one.without_relevant ? make("p.note", {}, `${one.without_relevant.toLocaleString("en")} of ${one.queries.toLocaleString("en")} queries ${one.without_relevant === 1 ? "has" : "have"} no relevant item so far: without one, a query counts as a difference of 0 here, and karat eval leaves it out.`) : null)));
  }
  $("estimate-pane").addEventListener("toggle", refresh);

  return { refresh, soon };
};
