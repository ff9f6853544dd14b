// What a thing is, and what proves its state: the panel at the side.

const detail = {
  open(key, from) {
    this.key = key;
    this.from = from ?? this.from;
    $("detail").hidden = false;
    this.painted = null;
    this.paint(player.t);
    $("detail-title").focus({ preventScroll: true });
  },
  close() {
    if ($("detail").hidden) return;
    $("detail").hidden = true;
    this.key = null;
    this.from?.focus({ preventScroll: true });
  },
  /** Which description is meant; the keys are those of describe.rs. */
  describe(part) {
    if (part?.kind === "certificate") return descriptions.certificate;
    const stage = part?.name?.replace(/^bootkube\//, "");
    return { station: descriptions[`station/${part?.name}`], stage: descriptions[`stage/${stage}`], member: descriptions.member, pod: descriptions.pod, step: descriptions.step }[part?.group];
  },
  paint(t) {
    if (!this.key) return;
    const part = index.story.get(this.key), [, node, ...rest] = this.key.split("/");
    const frames = part?.frames?.filter((frame) => frame.at <= t) ?? [];
    const mark = JSON.stringify([this.key, frames.length, part]);
    if (this.painted === mark) return;
    this.painted = mark;
    const what = this.describe(part) ?? descriptions[`station/${rest[0]}`] ?? {};
    say($("detail-title"), part?.kind === "certificate" ? part.name : what.title ?? rest.join("/"));
    const rows = [];
    const add = (title, ...content) => content.length && rows.push(make("h3", {}, title), ...content);
    const paragraph = (text) => make("p", {}, text);
    const files = (list) => make("ul", { class: "files" }, ...list.map((file) => make("li", {}, file)));
    rows.push(make("p", { class: "where" }, part ? part.place && part.kind === "certificate" ? part.place : node : `${node} does not pass here`));
    if (what.what) rows.push(paragraph(what.what));
    if (what.reads) add("Reads", files(what.reads));
    if (what.writes) add("Writes", files(what.writes));
    if (what.check) add("Worked when", paragraph(what.check));
    if (part?.kind === "certificate") add("Life", this.life(part));
    else if (part) add("Evidence", frames.length ? this.evidence(frames) : paragraph("Nothing yet."));
    if (part?.group === "pod" && index.story.has(`revisions/${part.name}`)) add("The operator says", this.revisions(index.story.get(`revisions/${part.name}`), node));
    const parts = this.partsOf(part, t);
    if (parts.length) add("Its steps", this.steps(part, parts, t));
    if (what.command) add("See for yourself", make("pre", { class: "command", tabindex: "0", "aria-label": "Command" }, what.command.replaceAll("LAB", index.lab.name).replaceAll("NODE", node)));
    $("detail-body").replaceChildren(...rows);
  },
  evidence(frames) {
    return make("ol", { class: "evidence" }, ...frames.map((frame) => make("li", { "data-state": frame.state }, icon({ learner: "open", voter: "done" }[frame.state] ?? frame.state),
      make("span", { class: "when" }, `${frame.at.toFixed(3)} s`), make("span", {}, [WORDS[frame.state], frame.revision === undefined ? "" : `revision ${frame.revision}`, frame.note ?? ""].filter(Boolean).join(", ")))));
  },
  /** Steps of the journal that a station or a stage is made of. */
  partsOf(part, t) {
    if (part?.kind !== "track") return [];
    const prefix = { station: { kubelet: "kubelet-join/", etcd: "etcd-", software: "boot/", api: "installer/kube-apiserver-pod/" }[part.name], stage: `${part.name}/`, member: "etcd-", pod: `installer/${part.name}-pod/` }[part.group];
    if (!prefix) return [];
    const own = (track) => track.node === part.node && track.name.startsWith(prefix) && frameAt(track.frames, t);
    return index.group("step").filter(own);
  },
  steps(part, tracks, t) {
    const short = (name) => name.startsWith(`${part.name}/`) ? name.slice(part.name.length + 1) : name;
    return make("ol", { class: "evidence" }, ...tracks.map((track) => {
      const frame = frameAt(track.frames, t), took = secondsAt(track.frames, t);
      return make("li", { "data-state": frame.state }, icon(frame.state), make("span", { class: "when" }, took === null ? "" : `${took.toFixed(1)} s`), make("span", {}, short(track.name) + (frame.note ? `: ${frame.note}` : "")));
    }));
  },
  revisions(revisions, node) {
    const [current, target] = revisions.nodes[node] ?? [0, 0];
    return make("p", {}, `newest revision ${revisions.latest}; here ${current || "none"} runs${target && target !== current ? `, ${target} is next` : ""}`);
  },
  life(certificate) {
    const text = (title, value) => value ? [make("dt", {}, title), make("dd", {}, value)] : [];
    const shown = (time) => time?.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC");
    return make("dl", { class: "life" }, ...text("made", shown(certificate.issued)), ...text("ends", shown(certificate.ends)), ...text("renewed from", shown(certificate.renewedFrom)), ...text("by", certificate.by));
  },
};
