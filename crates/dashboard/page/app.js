// The page as a whole: the story as it comes in, the moment that is shown, and the keys.

const recorded = $("recorded") !== null;
let descriptions = {}, offset = 0;

/** The story and what is looked up in it often. */
const index = {
  story: new Map(),
  lab: { name: "", started: 0, seconds: null },
  machines: [], moments: [], grouped: new Map(), kinds: new Map(),
  group(name) { return this.grouped.get(name) ?? []; },
  parts(kind) { return this.kinds.get(kind) ?? []; },
  rebuild() {
    this.grouped = new Map();
    this.kinds = new Map();
    const into = (map, key, part) => map.has(key) ? map.get(key).push(part) : map.set(key, [part]);
    for (const [key, part] of this.story) {
      part.key = key;
      into(this.kinds, part.kind, part);
      if (part.kind === "track") into(this.grouped, part.group, part);
    }
    const byPlace = (a, b) => a.place - b.place;
    for (const tracks of this.grouped.values()) tracks.sort(byPlace);
    this.kinds.get("bars")?.sort(byPlace);
    this.machines = this.parts("machine").sort(byPlace);
    this.moments = this.parts("moment").sort((a, b) => a.at - b.at);
    this.lab = this.story.get("lab") ?? this.lab;
  },
};

/** Which moment is shown: now, or one of a replay. */
const player = {
  live: true, playing: false, t: 0, scale: 60, before: 0,
  now() { return index.lab.started ? Math.max((Date.now() + offset - index.lab.started) / 1000, 0) : 0; },
  end() { return index.lab.seconds ?? this.now(); },
  toggle() {
    if (this.playing) this.playing = false;
    else {
      if (this.live || this.t >= this.end()) this.t = 0;
      this.live = false;
      this.playing = true;
    }
    wake();
  },
  seek(t) {
    this.live = false;
    this.t = Math.min(Math.max(t, 0), this.end());
    wake();
  },
  goLive() {
    this.live = true;
    this.playing = false;
    wake();
  },
  milestone(direction) {
    const times = events.milestones.map((moment) => moment.at), at = this.live ? this.end() : this.t;
    const next = direction > 0 ? times.find((time) => time > at + 0.05) : times.findLast((time) => time < at - 0.05);
    if (next !== undefined) this.seek(next + 0.001);
  },
  step(stamp) {
    const passed = Math.min((stamp - this.before) / 1000, 0.25);
    this.before = stamp;
    if (this.live) this.t = recorded ? this.end() : this.now();
    else if (this.playing) {
      this.t += passed * Number($("speed").value);
      if (this.t >= this.end()) {
        this.t = this.end();
        this.playing = false;
      }
    }
  },
  paint() {
    const end = this.end(), slider = $("slider"), shown = Math.min(this.t, end);
    const max = String(Math.max(end, 0.1));
    if (slider.max !== max) slider.max = max;
    if (document.activeElement !== slider || this.playing || this.live) slider.value = String(shown);
    const text = timeText(shown);
    say($("clock"), text);
    if (slider.told !== text) {
      slider.told = text;
      slider.setAttribute("aria-valuetext", text);
    }
    const play = $("play"), word = this.playing ? "Pause" : "Play";
    if (play.word !== word) {
      play.word = word;
      play.setAttribute("aria-label", word);
      play.querySelector("use").setAttribute("href", this.playing ? "#i-pause" : "#i-play");
    }
    const pressed = String(this.live);
    if ($("live").getAttribute("aria-pressed") !== pressed) $("live").setAttribute("aria-pressed", pressed);
  },
};

const status = {
  away: false,
  /** The API is asked every few seconds; power is known from the same round. */
  asked: () => index.machines.some((machine) => machine.power),
  paint() {
    const { lab } = index, failed = index.group("stage").find((track) => frameAt(track.frames, player.t)?.state === "failed");
    const [state, text] = this.away && !recorded ? ["interrupted", "the server does not answer; trying again"]
      : !lab.started ? ["waiting", "the machines are not switched on yet"]
      : !player.live ? ["skipped", lab.seconds ? `replay of ${lab.seconds.toFixed(1)} s` : "replay"]
      : failed ? ["failed", `${failed.name.replace("bootkube/", "")} failed`]
      : lab.seconds && !recorded && !lab.api && this.asked() ? ["interrupted", `grown in ${lab.seconds.toFixed(1)} s; the API does not answer`]
      : lab.seconds ? ["done", `grown in ${lab.seconds.toFixed(1)} s`]
      : ["open", "growing"];
    show($("status"), state);
    say($("status-text"), text);
  },
};

/** Something of the story is different: what it is made of may be, too. */
function changed() {
  index.rebuild();
  player.scale = scaleFor(index.lab.seconds, player.now());
  say($("lab"), index.lab.name || "Seedling");
  say($("domain"), index.lab.domain ?? "");
  document.title = index.lab.name ? `${index.lab.name}: Seedling` : "Seedling";
  path.sync(index);
  stages.sync(index);
  etcd.sync(index, player.scale);
  pods.sync(index);
  timeline.sync(index, player.scale);
  events.sync(index);
  certificates.sync(index);
  log.sync(index);
  ticks();
  document.querySelector("main").classList.remove("empty");
  wake();
}

function ticks() {
  const end = player.end() || 1;
  const marks = events.milestones.map((moment) => {
    const tick = make("i", {});
    tick.style.left = `${Math.min(moment.at / end, 1) * 100}%`;
    return tick;
  });
  $("ticks").replaceChildren(...marks);
}

let awake = false, idle = 0;
/** Frames are asked for while something moves; a page at rest draws nothing. */
function wake() {
  idle = 0;
  if (awake) return;
  awake = true;
  player.before = performance.now();
  requestAnimationFrame(draw);
}

function draw(stamp) {
  player.step(stamp);
  const grows = player.live && !index.lab.seconds && index.lab.started > 0 && !recorded;
  if (grows && scaleFor(null, player.now()) !== player.scale) changed();
  if (index.machines.length > 0) {
    const { t, scale } = player;
    path.paint(t, index);
    stages.paint(t);
    etcd.paint(t, scale);
    pods.paint(t);
    timeline.paint(t, scale);
    events.paint(t);
    certificates.paint(t);
    detail.paint(t);
  }
  player.paint();
  status.paint();
  awake = player.playing || grows || idle++ < 2;
  if (awake) requestAnimationFrame(draw);
}

function take(snapshot) {
  offset = recorded ? 0 : snapshot.now - Date.now();
  descriptions = snapshot.descriptions;
  index.story = new Map(Object.entries(snapshot.story));
  changed();
}

/** The browser connects again by itself, and says what it has seen last. */
function follow() {
  const stream = new EventSource("stream");
  stream.addEventListener("snapshot", (event) => take(JSON.parse(event.data)));
  stream.addEventListener("change", (event) => {
    const { set = {}, gone = [] } = JSON.parse(event.data);
    for (const key of gone) index.story.delete(key);
    for (const [key, part] of Object.entries(set)) index.story.set(key, part);
    changed();
  });
  stream.addEventListener("open", () => { status.away = false; wake(); });
  stream.addEventListener("error", () => {
    status.away = true;
    wake();
    // One that was refused is not tried again by the browser.
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  });
}

function theme(next) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const root = document.documentElement, now = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = next ?? (now === "dark" ? "light" : "dark");
  try { localStorage.setItem("seedling-theme", root.dataset.theme); } catch { /* private windows remember nothing */ }
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const on = event.target, field = on.matches("input, select, textarea"), button = on.matches("button");
  if (on.matches(".cell") && (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End")) {
    event.preventDefault();
    path.move(on, event.key);
    return;
  }
  const act = {
    " ": () => (!button || on.matches(".cell")) && !on.matches("select") && player.toggle(),
    "?": () => $("keys").open || $("keys").showModal(),
    l: () => player.goLive(),
    t: () => theme(),
    ",": () => player.milestone(-1),
    ".": () => player.milestone(1),
    Escape: () => detail.close(),
  }[event.key];
  if (!act || (field && event.key !== " " && event.key !== "Escape") || $("keys").open) return;
  if (act() !== false) event.preventDefault();
}

function start() {
  try {
    const kept = localStorage.getItem("seedling-theme");
    if (kept) theme(kept);
  } catch { /* private windows remember nothing */ }
  events.start();
  $("play").addEventListener("click", () => player.toggle());
  $("live").addEventListener("click", () => player.goLive());
  $("slider").addEventListener("input", (event) => player.seek(Number(event.target.value)));
  $("theme").addEventListener("click", () => theme());
  $("help").addEventListener("click", () => $("keys").showModal());
  $("detail-close").addEventListener("click", () => detail.close());
  document.addEventListener("keydown", keys);
  // Space plays, also where it would press a cell.
  document.addEventListener("keyup", (event) => { if (event.key === " " && event.target.matches(".cell")) event.preventDefault(); });
  if (recorded) {
    say($("live"), "End");
    $("log-section").hidden = true;
    take(JSON.parse($("recorded").textContent));
  } else {
    log.start();
    follow();
  }
}

start();
// For tests, and for people who look behind the page.
globalThis.seedling = { index, player, stateAt };
