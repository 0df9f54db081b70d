"use strict";
{
  const PAGE = 100;
  const {groups, strategy_names: names} = evenlag;
  const columns = [...document.querySelectorAll("#table thead th")];
  const body = document.querySelector("#table tbody"), search = document.getElementById("search");
  const more = document.getElementById("more"), found = document.getElementById("found");
  let by = "makespan_saved", down = true, shown = PAGE;
  const text = (value) => Array.isArray(value) ? value.join(", ") : value;
  const compare = (a, b) => {
    const [one, other] = [text(a[by]), text(b[by])];
    if (one === null || other === null) return (one === null) - (other === null);
    const order = typeof one === "number" ? one - other : String(one).localeCompare(String(other));
    return down ? -order : order;
  };
  const link = (row) => `#group=${encodeURIComponent(row.group)}`;
  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    const rows = groups.filter((row) => `${row.group} ${row.status} ${row.binding.join(" ")}`.toLowerCase().includes(wanted)).sort(compare);
    body.replaceChildren(...rows.slice(0, shown).map((row) => make("tr", {}, ...columns.map((column, i) => {
      const value = row[column.dataset.by];
      if (i === 0) return make("th", {scope: "row"}, make("a", {href: link(row)}, value));
      return make("td", {class: column.className}, column.className === "n" ? figure(value) : text(value));
    }))));
    found.textContent = `${figure(rows.length)} of ${quantity(groups.length, "group")}`;
    more.hidden = rows.length <= shown;
    for (const column of columns) column.setAttribute("aria-sort", column.dataset.by !== by ? "none" : down ? "descending" : "ascending");
  };
  for (const column of columns) {
    const button = make("button", {type: "button", class: "sort"}, column.textContent);
    column.replaceChildren(button);
    button.addEventListener("click", () => {
      down = by === column.dataset.by ? !down : column.className === "n";
      by = column.dataset.by;
      draw();
    });
  }
  more.querySelector("button").addEventListener("click", () => { shown += PAGE; draw(); });
  search.addEventListener("input", () => { shown = PAGE; draw(); });

  const detail = document.getElementById("detail");
  const cells = (...values) => values.map((value, i) => make(i ? "td" : "th", i ? {class: "n"} : {scope: "row"}, value));
  const open = () => {
    const row = groups.find((each) => link(each) === location.hash);
    detail.hidden = !row;
    if (!row) return;
    const title = document.getElementById("one");
    title.textContent = row.group;
    document.getElementById("about").textContent = row.error ? `failed: ${row.error}`
      : `${row.status}, ${quantity(row.partitions, "partition")}, snapshot of ${row.snapshot_ts}: spread today ${figure(row.today)}, at best ${figure(row.best)}, proven bound ${figure(row.bound)}` +
        (row.members > row.loads.length ? `; the ${figure(row.loads.length)} most loaded of ${quantity(row.members, "member")}` : "") +
        (row.binding.length ? `; limited by ${row.binding.join(", ")}` : "");
    document.getElementById("own").textContent = `evenlag report INPUT --group ${/^[\w.@%+=:,/-]+$/.test(row.group) ? row.group : `'${row.group.replaceAll("'", `'\\''`)}'`} --out group.html`;
    const highest = Math.max(1, ...row.loads.flatMap(([, today, planned]) => [today, planned]));
    const track = (load, kind) => make("div", {class: `track ${kind}`}, make("i", {style: `width:${100 * load / highest}%`}));
    document.getElementById("bars").replaceChildren(...row.loads.map(([member, today, planned]) => make("div", {class: "member"},
      make("span", {class: "name", title: member}, member),
      make("div", {class: "tracks", role: "img", "aria-label": `${member}: ${quantity(planned, "message")} planned, ${figure(today)} today`}, track(today, "was"), track(planned, "")),
      make("span", {class: "sum"}, figure(planned)))));
    const head = make("thead", {}, make("tr", {}, ...["strategy", "spread", "above the best", "moves"].map((each, i) => make("th", {scope: "col", class: i ? "n" : ""}, each))));
    document.getElementById("others").replaceChildren(make("table", {}, head, make("tbody", {}, ...row.strategies.map(([i, spread, excess, moves]) =>
      make("tr", i === names.indexOf("optimal") ? {class: "best"} : {}, ...cells(names[i], figure(spread), figure(excess), figure(moves)))))));
    detail.scrollIntoView();
    title.focus({preventScroll: true});
  };
  addEventListener("hashchange", open);
  draw();
  open();
}
