// Machines × stations, and bootkube's stages.

const STATIONS = [["power", "Power"], ["address", "Address"], ["ignition", "Ignition"], ["config", "Config"], ["software", "Software"],
  ["kubelet", "Kubelet"], ["etcd", "etcd"], ["api", "API"], ["ready", "Ready"]];

const path = {
  cells: [],
  sync(index) {
    const grid = $("path");
    if (!grid.firstChild) {
      const heads = STATIONS.map(([, title]) => make("div", { role: "columnheader", class: "station" }, make("span", {}, title)));
      grid.append(make("div", { role: "row", class: "row head" }, make("div", { role: "columnheader", class: "corner" }, make("span", { class: "hidden" }, "Machine")), ...heads));
    }
    const rows = this.rows ?? (this.rows = make("div", { role: "rowgroup", class: "rows" }));
    if (!rows.parentNode) grid.append(rows);
    keyed(rows, index.machines, (machine) => machine.name, (machine) => this.row(machine));
    this.cells = index.machines.map((machine) => rows.known.get(machine.name).cells);
    for (const row of this.cells) {
      for (const cell of row) cell.track = index.story.get(cell.key) ?? null;
    }
    if (!grid.querySelector('[tabindex="0"]')) this.cells[0]?.[0]?.setAttribute("tabindex", "0");
  },
  row(machine) {
    const row = make("div", { role: "row", class: "row" });
    const power = make("span", { class: "power" });
    row.append(make("div", { role: "rowheader", class: "machine" }, make("b", {}, machine.name), make("span", { class: "address" }, machine.address), power));
    row.cells = STATIONS.map(([name, title], column) => {
      const button = make("button", { type: "button", class: "cell", tabindex: "-1", "data-state": "waiting" }, icon("waiting"), make("span", { class: "took" }));
      button.key = `station/${machine.name}/${name}`;
      button.title_ = `${machine.name}, ${title}`;
      button.column = column;
      button.took = button.lastChild;
      button.addEventListener("click", () => detail.open(button.key, button));
      button.addEventListener("focus", () => this.rove(button));
      row.append(make("div", { role: "gridcell" }, button));
      return button;
    });
    row.power = power;
    return row;
  },
  paint(t, index) {
    for (const row of this.cells) {
      for (const cell of row) {
        if (!cell.track) {
          show(cell, "none", `${cell.title_}: does not pass here`);
          continue;
        }
        const frame = frameAt(cell.track.frames, t);
        const state = frame?.state ?? "waiting";
        const took = secondsAt(cell.track.frames, t);
        say(cell.took, took === null ? "" : took.toFixed(1));
        show(cell, state, `${cell.title_}: ${WORDS[state]}${took === null ? "" : `, ${took.toFixed(1)} seconds`}`);
      }
    }
    for (const machine of index.machines) {
      const { power } = this.rows.known.get(machine.name);
      const off = frameAt(index.story.get(`station/${machine.name}/power`)?.frames ?? [], t)?.state === "gone";
      say(power, off || (player.live && machine.power === "off" && t > 1) ? "off" : player.live && machine.power === "paused" ? "frozen" : "");
    }
  },
  /** One cell of the grid is in the tab order: the last that had the focus. */
  rove(cell) {
    $("path").querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    cell.setAttribute("tabindex", "0");
  },
  move(from, key) {
    const row = this.cells.findIndex((cells) => cells.includes(from));
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key] ?? [0, 0];
    const column = key === "Home" ? 0 : key === "End" ? STATIONS.length - 1 : from.column + right;
    this.cells[row + down]?.[column]?.focus();
  },
};

const stages = {
  sync(index) {
    this.tracks = index.group("stage");
    keyed($("stages"), this.tracks, (track) => track.name, (track) => {
      const name = track.name.replace(/^bootkube\//, "");
      const button = make("button", { type: "button", class: "stage", "data-state": "waiting" }, icon("waiting"), make("span", { class: "name" }, name), make("span", { class: "took" }));
      button.addEventListener("click", () => detail.open(`step/${track.node}/${track.name}`, button));
      const item = make("li", {}, button);
      item.button = button;
      return item;
    });
  },
  paint(t) {
    let done = 0;
    for (const track of this.tracks) {
      const { button } = $("stages").known.get(track.name);
      const state = frameAt(track.frames, t)?.state ?? "waiting";
      const took = secondsAt(track.frames, t);
      done += state === "done" || state === "skipped" ? 1 : 0;
      show(button, state);
      say(button.lastChild, took === null || state === "skipped" ? "" : took.toFixed(1));
    }
    say($("stages-count"), `${done} of ${this.tracks.length} stages`);
  },
};
