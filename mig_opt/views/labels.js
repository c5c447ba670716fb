// Writes into each box as much of its label as has room there, in the part of the box that is in view.
const LARGEST = 12, SMALLEST = 7, PADDING = 3, LEAST_CHARACTERS = 3;
const PAUSE = 60; // milliseconds without a change after which labels are fitted: until then the old ones move along

const shared = window.mig_opt_labels ??= {
  timers: new Map(),
  widths: new Map(),
  canvas: document.createElement("canvas").getContext("2d"),
};
shared.canvas.font = `${LARGEST}px Helvetica, Arial, sans-serif`;

function width(text) {
  if (!shared.widths.has(text)) shared.widths.set(text, shared.canvas.measureText(text).width / LARGEST);
  return shared.widths.get(text);
}

function shortened(name, room) {
  if (width(name) <= room) return name;
  const kept = Math.floor(name.length * (room - width("…")) / width(name));
  return kept >= LEAST_CHARACTERS ? name.slice(0, kept) + "…" : "";
}

function fit() {
  const [left, right] = [plot.x_range.start, plot.x_range.end];
  const [low, high] = [Math.min(plot.y_range.start, plot.y_range.end), Math.max(plot.y_range.start, plot.y_range.end)];
  const [across, along] = [plot.inner_width / (right - left), plot.inner_height / (high - low)];
  const {data} = boxes;
  const found = {x: [], y: [], text: [], size: [], ink: []};
  for (let i = 0; i < names.length; i++) {
    const begin = Math.max(data.left[i], left), end = Math.min(data.right[i], right);
    const top = Math.max(data.top[i], low), bottom = Math.min(data.bottom[i], high);
    const font = Math.min(LARGEST, 0.85 * (bottom - top) * along);
    const room = (end - begin) * across - 2 * PADDING;
    const text = font >= SMALLEST && room > 0 ? shortened(names[i], room / font) : "";
    if (!text) continue;
    found.x.push((begin + end) / 2);
    found.y.push((top + bottom) / 2);
    found.text.push(text);
    found.size.push(`${font.toFixed(1)}px`);
    found.ink.push(inks[i]);
  }
  labels.data = found;
}

clearTimeout(shared.timers.get(labels.id));
shared.timers.set(labels.id, setTimeout(fit, PAUSE));
