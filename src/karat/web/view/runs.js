// The list of runs: it follows the folder, counts the runs that are chosen, and says how long ago each was saved.
(() => {
  "use strict";
  if (!view.is("runs")) return;
  const { at, all, say } = view;
  const EVERY = 1000, SHOWN = 6000;
  const many = (count, one, more) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;

  // Times.
  const format = new Intl.DateTimeFormat("en-GB", {
    day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
  });
  function ago(seconds) {
    if (seconds < 0) return "";
    if (seconds < 45) return "just now";
    if (seconds < 3570) return `${Math.max(Math.round(seconds / 60), 1)} min ago`;
    if (seconds < 84600) return `${Math.round(seconds / 3600)} h ago`;
    const days = Math.round(seconds / 86400);
    return days < 30 ? `${many(days, "day", "days")} ago` : "";
  }
  function showTimes() {
    for (const when of all(".when")) {
      const time = when.querySelector("time"), date = new Date(time.dateTime);
      const local = format.format(date), past = ago((Date.now() - date) / 1000);
      if (time.textContent !== local) time.textContent = local;
      const beside = when.querySelector(".ago");
      if (beside.textContent !== past) beside.textContent = past;
    }
  }

  // The runs that are chosen: in the boxes, in the address, and in every link to this list.
  const boxes = () => all('input[name="runs"][form="compared"], #compared input[name="runs"]');
  const isChosen = (box) => box.type === "hidden" || box.checked;
  let chosen = new Set(boxes().filter(isChosen).map((box) => box.value));

  function showChosen() {
    const bar = at("compared");
    if (!bar) return;
    const now = boxes().filter(isChosen);
    chosen = new Set(now.map((box) => box.value));
    const golds = new Set(now.map((box) => box.dataset.gold));
    bar.querySelector(".count").textContent =
      now.length ? `${many(now.length, "run", "runs")} chosen` : "Choose two or more runs to compare them.";
    const tooMany = bar.querySelector(".most");
    bar.querySelector(".differ").hidden = golds.size < 2;
    tooMany.hidden = now.length <= Number(tooMany.dataset.most);
    bar.querySelector(".main").disabled = now.length < 2 || !tooMany.hidden;
    bar.querySelector(".clear").hidden = !now.length;
    showBaseline(bar, now);
    keepInAddress();
  }
  function showBaseline(bar, now) {
    const label = bar.querySelector(".baseline"), select = label.querySelector("select"), before = select.value;
    label.hidden = now.length < 2;
    while (select.options.length > 1) select.remove(1);
    for (const box of now) select.add(new Option(box.dataset.name, box.value));
    select.value = chosen.has(before) ? before : "";
  }
  function withChosen(address) {
    const url = new URL(address, location.href);
    if (chosen.size) url.searchParams.set("runs", [...chosen].join(","));
    else url.searchParams.delete("runs");
    return url.href.replaceAll("%2C", ",");
  }
  function keepInAddress() {
    const address = withChosen(location.href);
    if (address !== location.href) history.replaceState(history.state, "", address);
    for (const link of all('main a[href^="/?"], main a[href="/"]')) {
      link.setAttribute("href", withChosen(link.getAttribute("href")).slice(location.origin.length));
    }
    for (const form of all("form.filter, form.metric")) {
      let hidden = form.querySelector('input[name="runs"]');
      if (!hidden) {
        hidden = Object.assign(document.createElement("input"), { type: "hidden", name: "runs" });
        form.prepend(hidden);
      }
      hidden.value = [...chosen].join(",");
    }
  }
  document.addEventListener("change", (event) => {
    if (event.target.name === "runs") showChosen();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.matches(".compared .clear")) return;
    for (const box of boxes()) {
      if (box.type === "hidden") box.remove();
      else box.checked = false;
    }
    showChosen();
    at("compared").querySelector(".count").scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form.filter, form.metric, form.compared")) {
      const empty = all("input, select", event.target).filter((field) => field.name && !field.value);
      for (const field of empty) field.disabled = true;
      setTimeout(() => empty.forEach((field) => { field.disabled = false; }));
    }
  });

  // The place of the reader, which a new list keeps.
  function place() {
    const focused = document.activeElement?.closest("#list") ? document.activeElement : null;
    const inSight = (one) => one.getBoundingClientRect().bottom > 0 && one.getBoundingClientRect().top < innerHeight;
    const shown = [focused, ...all("#list tr[id], #list h2[id]")].find((one) => one?.id && inSight(one));
    const near = scrollY < 8 ? null : shown;
    return {
      focus: focused?.id,
      near: near && { id: near.id, top: near.getBoundingClientRect().top },
      closed: all("#list details[id]").map((one) => [one.id, one.open]),
      across: all("#list .wide[id]").map((one) => [one.id, one.scrollLeft]),
      baseline: at("compared-baseline")?.value,
    };
  }
  function putBack(before) {
    for (const [id, open] of before.closed) if (at(id)) at(id).open = open;
    for (const [id, left] of before.across) if (at(id)) at(id).scrollLeft = left;
    for (const box of boxes()) if (box.type === "checkbox") box.checked = chosen.has(box.value);
    if (before.baseline && at("compared-baseline")) {
      at("compared-baseline").add(new Option("", before.baseline));
      at("compared-baseline").value = before.baseline;
    }
    if (before.focus) at(before.focus)?.focus({ preventScroll: true });
    const near = before.near && at(before.near.id);
    if (near) scrollBy({ top: near.getBoundingClientRect().top - before.near.top, behavior: "instant" });
  }

  // A new list.
  const rows = () => new Map(all("#list tr[id]").map((row) => [row.id, row]));
  const nameOf = (row) => row.querySelector("th").textContent;
  let shown = "";
  async function renew() {
    const address = new URL(withChosen(location.href));
    address.searchParams.set("part", "list");
    const text = await view.text(address);
    if (text === shown) return;
    const found = view.elements(text), list = found.getElementById("list"), filter = found.getElementById("filter");
    if (!list || !filter) return;
    shown = text;
    const wasReading = document.querySelector(".reading") !== null, old = rows(), before = place();
    const form = document.querySelector("form.filter");
    const fields = form ? all("input, select", form) : [];
    const inUse = form?.contains(document.activeElement) || fields.some((field) => field.type === "search" && field.value !== field.defaultValue);
    if (!inUse) at("filter").replaceWith(filter);
    at("list").replaceWith(list);
    putBack(before);
    showChosen();
    follows();
    showTimes();
    if (!wasReading) announce(old, rows());
  }
  function announce(old, now) {
    const added = [...now].filter(([id, row]) => row.dataset.written && old.get(id)?.dataset.written !== row.dataset.written);
    const gone = [...old.keys()].filter((id) => !now.has(id)).length;
    for (const [, row] of added) {
      row.classList.add("new");
      setTimeout(() => row.classList.remove("new"), SHOWN);
    }
    const fresh = added.filter(([id]) => !old.has(id)), again = added.filter(([id]) => old.has(id));
    const names = (some) => some.slice(0, 3).map(([, row]) => nameOf(row)).join(", ") + (some.length > 3 ? ", …" : "");
    const words = [
      fresh.length && `${fresh.length === 1 ? "New run" : `${fresh.length} new runs`}: ${names(fresh)}.`,
      again.length && `Saved again: ${names(again)}.`,
      gone && !fresh.length && `${many(gone, "file is", "files are")} gone.`,
    ].filter(Boolean).join(" ");
    if (words) sayBriefly(words);
  }
  let quiet = 0;
  function sayBriefly(words) {
    say(words);
    clearTimeout(quiet);
    quiet = setTimeout(say, SHOWN, "");
  }
  const follows = () => all(".follows").forEach((one) => { one.hidden = false; });

  // The folder.
  let looking = false, lost = false;
  async function look() {
    if (document.hidden || looking) return;
    looking = true;
    try {
      const answer = await fetch("/state", { headers: { Accept: "application/json" } });
      if (answer.status === 403) return lose("This page is not connected any more: open the address that karat view prints.");
      if (!answer.ok) return;
      if (lost) {
        lost = false;
        sayBriefly("Connected again.");
      }
      const { state } = await answer.json(), list = at("list");
      if (state !== list.dataset.state || "again" in list.dataset) await renew();
    } catch (error) {
      if (!error.status) lose("karat view has ended: this list does not change any more.");
    } finally {
      looking = false;
      if (document.querySelector(".reading") && !lost) setTimeout(look, 50);
    }
  }
  function lose(words) {
    lost = true;
    clearTimeout(quiet);
    say(words, true);
  }

  showTimes();
  showChosen();
  follows();
  setInterval(look, EVERY);
  setInterval(showTimes, 15000);
  document.addEventListener("visibilitychange", () => { showTimes(); look(); });
  addEventListener("pageshow", (event) => { if (event.persisted) { showChosen(); look(); } });
  if (document.querySelector(".reading")) look();
})();
