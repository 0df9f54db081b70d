"use strict";
if (document.getElementById("bars")) {
  const MOST = matchMedia("(max-width:36rem)").matches ? 15 : 40; // members drawn before the rest is asked for
  const {members, partitions, result} = evenlag;
  const points = evenlag.frontier ? evenlag.frontier.points.filter((point) => point.changes) : [];
  const owners = partitions.map((row) => row[3]), planned = partitions.map((row) => row[4]);
  const bars = document.getElementById("bars"), chooser = document.getElementById("chooser");
  const owned = owners.some((owner) => owner >= 0), even = members.every((member) => member.weight === members[0].weight);
  const byMember = (memberOf) => {
    const held = members.map(() => []);
    memberOf.forEach((m, p) => { if (m >= 0) held[m].push(p); });
    for (const each of held) each.sort((a, b) => partitions[b][2] - partitions[a][2]);
    return held;
  };
  const lagOf = (held) => held.reduce((sum, p) => sum + partitions[p][2], 0);
  const today = byMember(owners);
  const order = members.map((_, m) => m).sort((a, b) =>
    Math.max(lagOf(today[b]), members[b].planned.lag) - Math.max(lagOf(today[a]), members[a].planned.lag));
  const mean = partitions.reduce((sum, row) => sum + row[2], 0) / Math.max(members.length, 1);
  const highest = Math.max(1, ...members.map((member, m) => Math.max(lagOf(today[m]), member.planned.lag)),
    ...points.flatMap((point) => {
      const loads = today.map(lagOf);
      for (const [p, m] of point.changes) { if (owners[p] >= 0) loads[owners[p]] -= partitions[p][2]; if (m >= 0) loads[m] += partitions[p][2]; }
      return [Math.max(...loads)];
    }));
  let all = false, shown = planned;
  const segment = (p, kind) => make("i", {class: kind, style: `width:${100 * partitions[p][2] / highest}%`,
    title: `${partitions[p][0]}-${partitions[p][1]}: ${figure(partitions[p][2])}`});
  const draw = () => {
    const held = byMember(shown);
    const rows = order.slice(0, all ? order.length : MOST).map((m) => {
      const load = lagOf(held[m]), before = lagOf(today[m]);
      const tracks = make("div", {class: "tracks", role: "img", "aria-label":
        `${members[m].member}: ${quantity(held[m].length, "partition")}, ${quantity(load, "message")}` + (owned ? `; today ${today[m].length}, ${figure(before)}` : "")});
      if (owned) tracks.append(make("div", {class: "track was"}, make("i", {style: `width:${100 * before / highest}%`})));
      tracks.append(make("div", {class: "track"}, ...held[m].map((p) => segment(p, owners[p] === m || !owned ? "" : owners[p] < 0 ? "new" : "moved"))));
      if (even) tracks.append(make("b", {style: `left:${100 * mean / highest}%`}));
      return make("div", {class: "member"}, make("span", {class: "name", title: members[m].member}, members[m].member), tracks, make("span", {class: "sum"}, figure(load)));
    });
    bars.replaceChildren(...rows);
    if (!all && order.length > MOST) {
      const more = make("button", {type: "button"}, `Show ${quantity(order.length - MOST, "other member")}`);
      more.addEventListener("click", () => { all = true; draw(); bars.focus({preventScroll: true}); });
      bars.append(more);
    }
  };
  if (chooser && points.length > 1) {
    const slider = document.getElementById("point"), said = document.getElementById("chosen");
    const plan = () => { shown = planned; said.textContent = `the plan: ${quantity(result.moves, "move")}, spread ${figure(result.spread)}`; slider.setAttribute("aria-valuetext", said.textContent); draw(); };
    const nearest = points.reduce((best, point, i) => Math.abs(point.moves - result.moves) < Math.abs(points[best].moves - result.moves) ? i : best, 0);
    slider.max = points.length - 1;
    slider.value = nearest;
    slider.addEventListener("input", () => {
      const point = points[slider.value];
      shown = owners.slice();
      for (const [p, m] of point.changes) shown[p] = m;
      said.textContent = `${quantity(point.moves, "move")}: spread ${figure(point.spread)}, proven at least ${figure(point.bound)}`;
      slider.setAttribute("aria-valuetext", said.textContent);
      draw();
    });
    document.getElementById("reset").addEventListener("click", () => { slider.value = nearest; plan(); });
    chooser.hidden = false;
    plan();
  } else draw();
  bars.hidden = document.getElementById("legend").hidden = false;
}
