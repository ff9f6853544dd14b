// What is drawn over time: etcd's members, and the timeline with its critical path. Drawn once for a scale; a veil hides what is still to come.

/** The width of the names beside a chart, as in style.css. */
const NAMES = 92;
const SVG = "http://www.w3.org/2000/svg";

/** A bar from one second to another; a text only where a line of so many pixels has room for it, or for its beginning. */
function bar(scale, width, from, to, attributes, text) {
  const room = ((to - from) / scale) * width > Math.min(text.length, 14) * 7 + 8;
  const element = make("div", attributes, room ? make("span", {}, text) : null);
  element.style.left = `${(from / scale) * 100}%`;
  element.style.width = `${(Math.max(to - from, 0) / scale) * 100}%`;
  return element;
}

function axis(scale) {
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800].find((s) => scale / s <= 8) ?? 3600;
  const line = make("div", { class: "axis", "aria-hidden": "true" });
  for (let at = 0; at <= scale * 0.97; at += step) {
    const tick = make("span", {}, step >= 60 ? `${at / 60} min` : `${at} s`);
    tick.style.left = `${(at / scale) * 100}%`;
    line.append(tick);
  }
  return make("div", { class: "lane axis-lane" }, make("div", { class: "name" }), line);
}

/** The part of a chart beside the names: where time is. */
const veil = () => make("div", { class: "veil-lane", "aria-hidden": "true" }, make("div", { class: "veil" }));

const etcd = {
  sync(index, scale) {
    this.tracks = index.group("member");
    const drawn = JSON.stringify([this.tracks.map((track) => track.frames), scale]);
    if (this.drawn === drawn) return;
    this.drawn = drawn;
    const width = $("etcd").clientWidth - NAMES;
    const lanes = this.tracks.map((track) => {
      const line = make("div", { class: "line" });
      track.frames.forEach((frame, n) => {
        const next = track.frames[n + 1];
        if (frame.state !== "gone") line.append(bar(scale, width, frame.at, Math.min(next?.at ?? scale, scale), { class: "span", "data-state": frame.state }, frame.state === "open" ? "waits" : WORDS[frame.state]));
      });
      const button = make("button", { type: "button", class: "name" }, track.node);
      button.addEventListener("click", () => detail.open(`member/${track.node}/etcd`, button));
      return make("div", { class: "lane" }, button, line);
    });
    $("etcd").replaceChildren(this.steps(scale), ...lanes, axis(scale), veil());
    this.veil = $("etcd").querySelector(".veil");
  },
  /** The number of members as a line of steps. */
  steps(scale) {
    const most = Math.max(this.tracks.length, 1), steps = memberSteps(this.tracks);
    const y = (members) => 46 - (members / most) * 40;
    let line = `M0 ${y(0)}`;
    const labels = [];
    steps.forEach(([at, members], n) => {
      line += `H${(at / scale) * 1000}V${y(members)}`;
      const until = Math.min(steps[n + 1]?.[0] ?? scale, scale);
      if (members > 0 && (until - at) / scale > 0.03) {
        const label = make("span", { class: "count" }, String(members));
        label.style.left = `${(at / scale) * 100}%`;
        label.style.top = `${y(members)}px`;
        labels.push(label);
      }
    });
    line += "H1000";
    const svg = document.createElementNS(SVG, "svg");
    const drawn = document.createElementNS(SVG, "path");
    for (const [name, value] of [["viewBox", "0 0 1000 48"], ["preserveAspectRatio", "none"], ["class", "steps"], ["aria-hidden", "true"]]) svg.setAttribute(name, value);
    for (const [name, value] of [["d", line], ["vector-effect", "non-scaling-stroke"]]) drawn.setAttribute(name, value);
    svg.append(drawn);
    return make("div", { class: "lane tall-lane" }, make("div", { class: "name muted" }, "members"), make("div", { class: "line plain" }, svg, ...labels));
  },
  paint(t, scale) {
    const { voters, learners } = membersAt(this.tracks, t);
    const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
    say($("etcd-count"), plural(voters, "voter") + (learners > 0 ? `, ${plural(learners, "learner")}` : ""));
    moveVeil(this.veil, t, scale);
  },
};

function moveVeil(element, t, scale) {
  const left = 1 - Math.min(Math.max(t / scale, 0), 1);
  if (element.left !== left) {
    element.left = left;
    element.style.transform = `scaleX(${left})`;
  }
}

/** What the helper tells of a boot is a station; the rest is a step of a journal. */
const TOLD = { "power to DHCP": "power", "DHCP to pointer": "ignition", "waits for its configuration": "config", "fetches its software": "software", "kubelet, static pods, API server ready": "api" };
function keyOf(node, step) {
  const key = TOLD[step] ? `station/${node}/${TOLD[step]}` : `step/${node}/${step.replace(" ", "/")}`;
  return index.story.has(key) ? key : null;
}

/** Parts of the critical path below this are not listed one by one. */
const SHORT = 0.5;

const timeline = {
  sync(index, scale) {
    const rows = index.parts("bars"), critical = index.story.get("critical")?.parts ?? [];
    const drawn = JSON.stringify([rows, critical, scale]);
    if (this.drawn === drawn) return;
    this.drawn = drawn;
    const width = $("time").clientWidth - NAMES;
    const onPath = (node, b) => critical.some((p) => p.node === node && p.step === b.step && p.from < b.to && p.to > b.from);
    const parts = rows.map((row) => {
      const line = make("div", { class: "line stack" });
      lanesOf(row.bars).forEach((lane, n) => {
        for (const b of lane) {
          const kind = onPath(row.node, b) ? "critical" : b.waits ? "waits" : "work";
          const drawn = bar(scale, width, b.from, b.to, { class: `span ${kind}`, title: `${b.step}, ${(b.to - b.from).toFixed(1)} s` }, b.step);
          drawn.style.top = `${n * 17}px`;
          // For the keyboard the same is in the list of the critical path and in the grid.
          drawn.addEventListener("click", () => { const key = keyOf(row.node, b.step); if (key) detail.open(key, $("time-title")); });
          line.append(drawn);
        }
        line.style.height = `${(n + 1) * 17 - 2}px`;
      });
      return make("div", { class: "lane free" }, make("div", { class: "name" }, row.node), line);
    });
    $("time").replaceChildren(...parts, axis(scale), veil());
    this.veil = $("time").querySelector(".veil");
    const total = critical.reduce((sum, part) => sum + part.to - part.from, 0);
    say($("time-count"), total > 0 ? `${total.toFixed(1)} s` : "nothing was written down yet");
    this.critical(critical);
  },
  /** The long parts; the short ones only in sum. */
  critical(parts) {
    const took = (part) => part.to - part.from, long = parts.filter((part) => took(part) >= SHORT);
    const longest = Math.max(...long.map(took), SHORT);
    keyed($("critical"), long, (part) => `${part.from} ${part.to} ${part.step}`, (part) => {
      const size = make("i", {});
      size.style.width = `${(took(part) / longest) * 100}%`;
      const key = keyOf(part.node, part.step), what = make(key ? "button" : "span", { class: "what", type: key ? "button" : null }, part.step);
      if (key) what.addEventListener("click", () => detail.open(key, what));
      const item = make("li", {}, make("span", { class: "when" }, part.from.toFixed(1)), make("span", { class: "who" }, part.node), what,
        make("span", { class: "size", "aria-hidden": "true" }, size), make("span", { class: "took" }, `${took(part).toFixed(1)} s`));
      item.from = part.from;
      item.to = part.to;
      return item;
    });
    const short = parts.filter((part) => took(part) < SHORT), sum = short.reduce((all, part) => all + took(part), 0);
    say($("short"), short.length ? `and ${short.length} shorter than ${SHORT} s, ${sum.toFixed(1)} s together` : "");
  },
  paint(t, scale) {
    moveVeil(this.veil, t, scale);
    for (const item of $("critical").children) {
      const now = t >= item.to ? "past" : t >= item.from ? "now" : "later";
      if (item.dataset.when !== now) item.dataset.when = now;
    }
  },
};
