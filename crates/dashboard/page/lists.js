// Static pods, machine-config requests, certificates, events, and the end of a log.

const PODS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

const pods = {
  sync(index) {
    const tracks = index.group("pod"), nodes = [...new Set(tracks.map((track) => track.node))];
    this.tracks = tracks;
    keyed($("pods"), nodes, (node) => node, (node) => {
      const row = make("div", { class: "pod-row" }, make("div", { class: "name" }, node));
      row.cells = PODS.map((pod) => {
        const number = make("span", { class: "revision" });
        const button = make("button", { type: "button", class: "pod", "data-state": "waiting" }, make("span", { class: "pod-name" }, pod.replace("kube-", "")), make("span", { class: "hidden" }, ` on ${node}: `), number);
        button.number = number;
        button.addEventListener("click", () => detail.open(`pod/${node}/${pod}`, button));
        row.append(button);
        return button;
      });
      return row;
    });
  },
  paint(t) {
    for (const track of this.tracks) {
      const cell = $("pods").known.get(track.node).cells[PODS.indexOf(track.name)];
      const frame = frameAt(track.frames, t), state = frame?.state ?? "waiting";
      const text = state === "waiting" ? "–" : state === "gone" ? "stopped" : frame.revision === undefined ? "runs" : state === "open" ? `→ ${frame.revision}` : state === "failed" ? `${frame.revision} failed` : String(frame.revision);
      say(cell.number, text);
      show(cell, state);
    }
  },
};

/** Lines of a list: those up to the moment, newest first, so many at most. */
const MOST_LINES = 80;
function lines(list, moments, t) {
  let end = 0;
  while (end < moments.length && moments[end].at <= t) end++;
  const shown = moments.slice(Math.max(0, end - MOST_LINES), end).reverse();
  const mark = `${shown.length ? shown[0].key : ""} ${shown.length} ${moments.length}`;
  if (list.mark !== mark) {
    list.mark = mark;
    keyed(list, shown, (moment) => moment.key, (moment) => make("li", { "data-tone": moment.tone },
      make("span", { class: "when" }, moment.at.toFixed(1)), make("span", { class: "who" }, moment.node || moment.source), make("span", { class: "what" }, moment.text)));
  }
  return end;
}

const SOURCES = [["milestone", "Milestones"], ["helper", "Helper"], ["journal", "Failed steps"], ["cluster", "Cluster"]];
const events = {
  wanted: new Set(SOURCES.map(([source]) => source)),
  start() {
    for (const [source, title] of SOURCES) {
      const button = make("button", { type: "button", "aria-pressed": "true" }, title);
      button.addEventListener("click", () => {
        if (!this.wanted.delete(source)) this.wanted.add(source);
        button.setAttribute("aria-pressed", String(this.wanted.has(source)));
        changed();
      });
      $("sources").append(button);
    }
  },
  sync(index) {
    const all = index.moments;
    this.configs = all.filter((moment) => moment.source === "config");
    this.shown = all.filter((moment) => this.wanted.has(moment.source));
    this.milestones = all.filter((moment) => moment.source === "milestone");
  },
  paint(t) {
    const asked = lines($("configs"), this.configs, t);
    say($("configs-count"), asked === 0 ? "none yet" : String(asked));
    say($("events-count"), String(lines($("events"), this.shown, t)));
    const last = frameAt(this.milestones, t);
    say($("milestone"), last ? `${last.at.toFixed(1)} s  ${last.text}` : "\u00a0");
  },
};

const certificates = {
  sync(index) {
    // The same file on several masters is one line.
    const lines = new Map();
    for (const c of index.parts("certificate")) {
      const key = `${c.name} ${c.ends}`, line = lines.get(key);
      if (line) line.places.push(c.place); else lines.set(key, { ...c, line: key, places: [c.place] });
    }
    this.all = [...lines.values()].sort((a, b) => a.ends.localeCompare(b.ends) || a.name.localeCompare(b.name));
    const day = 86400000, longest = Math.max(...this.all.map((c) => Date.parse(c.ends) - Date.parse(c.issued)), day);
    keyed($("certs"), this.all, (c) => `${c.line} ${c.places.length}`, (c) => {
      const life = make("i", {});
      // Lives are between a day and ten years: by their logarithm both can be seen.
      const size = (ms) => Math.log2(1 + Math.max(ms, 0) / day) / Math.log2(1 + longest / day);
      life.style.width = `${size(Date.parse(c.ends) - Date.parse(c.issued)) * 100}%`;
      const place = c.places.length > 1 ? `${c.places.length} machines` : c.places[0];
      const button = make("button", { type: "button" }, make("span", { class: "what" }, this.short(c.name)), make("span", { class: "who" }, place), make("span", { class: "size", "aria-hidden": "true" }, life), make("span", { class: "took" }, c.ends.slice(0, 10)));
      button.addEventListener("click", () => detail.open(c.key, button));
      const item = make("li", {}, button);
      item.at = c.at;
      return item;
    });
  },
  /** Of a path what tells it from others. */
  short: (name) => name.replace(/\/(secrets|configmaps)\//, "/").replace(/\/(tls|ca-bundle)\.crt$/, ""),
  paint(t) {
    let made = 0;
    for (const item of $("certs").children) {
      const later = item.at > t;
      made += later ? 0 : 1;
      if (item.later !== later) {
        item.later = later;
        item.classList.toggle("later", later);
      }
    }
    const first = made > 0 ? this.all.find((c) => c.at <= t) : null;
    say($("certs-count"), this.all.length === 0 ? "none known yet" : `${made}${first ? `, the first ends ${first.ends.slice(0, 10)}` : ""}`);
  },
};

const log = {
  start() {
    $("log-of").addEventListener("change", () => this.fetch());
    setInterval(() => { if (player.live && !document.hidden) this.fetch(); }, 2000);
  },
  sync(index) {
    const names = ["helper", ...index.machines.map((machine) => machine.name)];
    keyed($("log-of"), names, (name) => name, (name) => make("option", { value: name }, name));
  },
  async fetch() {
    const node = $("log-of").value, box = $("log");
    if (recorded || !node) return;
    try {
      const answer = await fetch(`log/${encodeURIComponent(node)}`);
      const text = await answer.text();
      if (node !== $("log-of").value || box.said === text) return;
      const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
      say(box, text);
      if (atEnd) box.scrollTop = box.scrollHeight;
    } catch { /* the stream says that the server is away */ }
  },
};
