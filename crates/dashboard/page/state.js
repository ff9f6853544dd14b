// Pure: what a story looks like at a moment, as story::state_at in Rust does it. Nothing here touches the page.

/** The frame that holds at a moment: the last that is not later. */
function frameAt(frames, t) {
  let low = 0, high = frames.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (frames[middle].at <= t) low = middle + 1; else high = middle;
  }
  return low > 0 ? frames[low - 1] : null;
}

/** What each thing was at a moment, by key. */
function stateAt(story, t) {
  const held = {};
  for (const [key, part] of story) {
    if (part.kind === "track") {
      const frame = frameAt(part.frames, t);
      if (frame) held[key] = frame;
    } else if (!((part.kind === "moment" || part.kind === "certificate") && part.at > t)) {
      held[key] = part;
    }
  }
  return held;
}

/** How long it has been open at a moment, or how long it took; null: it never began. */
function secondsAt(frames, t) {
  let begun = null, last = null;
  for (const frame of frames) {
    if (frame.at > t) break;
    if (frame.state === "open") begun ??= frame.at;
    else if (begun !== null && frame.state !== "gone") { last = frame.at - begun; begun = null; }
  }
  return begun !== null ? t - begun : last;
}

/** Voters and learners at a moment. */
function membersAt(tracks, t) {
  const count = { voters: 0, learners: 0 };
  for (const track of tracks) {
    const state = frameAt(track.frames, t)?.state;
    if (state === "voter") count.voters++;
    if (state === "learner") count.learners++;
  }
  return count;
}

/** Each moment at which the number of members changed: [at, members]. */
function memberSteps(tracks) {
  const times = [...new Set(tracks.flatMap((track) => track.frames.map((frame) => frame.at)))].sort((a, b) => a - b);
  const steps = [[0, 0]];
  for (const at of times) {
    const { voters, learners } = membersAt(tracks, at);
    if (voters + learners !== steps[steps.length - 1][1]) steps.push([at, voters + learners]);
  }
  return steps;
}

/** Bars into as few lanes as needed, none over another. */
function lanesOf(bars) {
  const lanes = [];
  for (const bar of [...bars].sort((a, b) => a.from - b.from || b.to - a.to)) {
    let lane = lanes.findIndex((l) => l[l.length - 1].to <= bar.from + 0.001);
    if (lane < 0) lane = lanes.push([]) - 1;
    lanes[lane].push(bar);
  }
  return lanes;
}

/** A scale that grows in large steps while a bring-up is under way, so that what is drawn seldom moves. */
function scaleFor(seconds, now) {
  if (seconds) return Math.max(seconds, 0.1);
  return [60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800, 3600].find((scale) => now < scale * 0.92) ?? now * 1.25;
}

function timeText(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${String(minutes % 60).padStart(2, "0")} min` : `${Math.floor(hours / 24)} days`;
}
