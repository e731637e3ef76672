// The facts about each node as numbers, text and colours.

// Created once, because toLocaleString would create such an object for every number.
const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
const count = (value) => GROUPED.format(value);
const short = (n) => (n < 1000 ? count(n) : `${(n / 1000).toFixed(n < 9950 ? 1 : 0)}k`);
const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

function percent(share) {
  const value = 100 * share,
    text = value.toFixed(1);
  if (text === "0.0" && value > 0) return "< 0.1 %";
  if (text === "100.0" && value < 100) return "> 99.9 %";
  return `${text.replace(".0", "")} %`;
}

const SUPERSCRIPTS = Object.fromEntries([..."-0123456789"].map((c, k) => [c, [..."⁻⁰¹²³⁴⁵⁶⁷⁸⁹"][k]]));

function plain(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    const [digits, exponent] = value.toExponential(2).split("e");
    return `${digits} × 10${[...exponent].map((c) => SUPERSCRIPTS[c] ?? "").join("")}`;
  }
  return GROUPED.format(Number(value.toPrecision(3)));
}

// Isolates a label, whose text direction is unknown, from the text around it.
const isolated = (text) => `\u2068${text}\u2069`;

class Facts {
  constructor(tree, data) {
    this.tree = tree;
    this.names = data.classes;
    this.nodes = data.nodes;
    this.sides = data.sides;
    this.features = data.features;
    this.confusion = data.confusion && this.counted(data.confusion);
  }

  // The triplets of the confusion matrix, and the counts of classes and nodes that follow from them.
  counted(triplets) {
    const { tree } = this,
      n = this.names.length,
      all = { entries: [], rows: 0, right: 0 };
    for (const name of ["ofClass", "asClass", "hit"]) all[name] = new Int32Array(n);
    all.lost = new Int32Array(tree.n);
    for (let k = 0; k < triplets.length; k += 3) {
      const [truth, predicted, number] = triplets.slice(k, k + 3);
      all.entries.push([truth, predicted, number]);
      all.rows += number;
      all.ofClass[truth] += number;
      all.asClass[predicted] += number;
      if (truth === predicted) ((all.hit[truth] += number), (all.right += number));
      else all.lost[tree.meeting(tree.leafOfClass[truth], tree.leafOfClass[predicted])] += number;
    }
    return all;
  }

  fact(name, i) {
    const column = this.nodes[name];
    return column && !this.tree.isLeaf(i) ? column[this.tree.internal[i]] : null;
  }

  // Rows by their true side and the side that the machine of the node chooses.
  sidesOf(i) {
    return this.sides && !this.tree.isLeaf(i) ? this.sides[this.tree.internal[i]] : null;
  }

  // Internal nodes: the share of rows sent to the correct side. Leaves: the recall of the class.
  accuracy(i) {
    if (!this.confusion) return null;
    if (this.tree.isLeaf(i)) {
      const k = this.tree.leafClass[i];
      return this.confusion.ofClass[k] ? this.confusion.hit[k] / this.confusion.ofClass[k] : null;
    }
    const [ll, lr, rl, rr] = this.sidesOf(i),
      all = ll + lr + rl + rr;
    return all ? (ll + rr) / all : null;
  }

  name(i) {
    return this.names[this.tree.leafClass[i]];
  }

  title(i) {
    return this.tree.isLeaf(i) ? this.name(i) : plural(this.tree.size[i], "class", "classes");
  }

  // One line for a screen reader, the outline and the tooltip.
  sentence(i) {
    const { tree } = this,
      parts = [tree.isLeaf(i) ? `Class ${isolated(this.name(i))}` : `Node with ${this.title(i)}`];
    parts.push(`depth ${tree.depth[i]}`);
    if (this.fact("margin", i) !== null) parts.push(`margin ${plain(this.fact("margin", i))}`);
    if (this.accuracy(i) !== null) parts.push(`accuracy ${percent(this.accuracy(i))}`);
    return parts.join(", ");
  }
}

// Each measure has a value per node (null: none) and a place between 0 and 1 on its scale.
function measuresOf(facts) {
  const { tree } = facts,
    all = [];
  const internal = [...Array(tree.n).keys()].filter((i) => !tree.isLeaf(i));
  if (facts.confusion) {
    // A logarithmic scale of the errors: 99 % and 90 % differ as much as 90 % and, roughly, 40 %.
    const place = (value) => 1 - Math.log1p(99 * (1 - value)) / Math.log(100);
    all.push({
      name: "accuracy",
      label: "Accuracy",
      value: (i) => facts.accuracy(i),
      place,
      show: percent,
      ticks: [0, 0.8, 0.95, 1],
    });
    const most = facts.confusion.lost.reduce((a, b) => Math.max(a, b), 1);
    all.push({
      name: "errors",
      label: "Errors made here",
      value: (i) => (tree.isLeaf(i) ? null : facts.confusion.lost[i]),
      place: (value) => Math.sqrt(value / most),
      show: count,
      ticks: [0, Math.round(most / 4), most],
    });
  }
  if (facts.nodes.margin) {
    const values = internal.map((i) => facts.fact("margin", i)).filter((value) => value > 0);
    const low = Math.log(values.reduce((a, b) => Math.min(a, b), Infinity));
    const high = Math.log(values.reduce((a, b) => Math.max(a, b), 0)),
      range = high - low || 1;
    all.push({
      name: "margin",
      label: "Margin",
      value: (i) => facts.fact("margin", i),
      place: (value) => (Math.log(value) - low) / range,
      show: plain,
      ticks: values.length ? [Math.exp(low), Math.exp((low + high) / 2), Math.exp(high)] : [],
    });
    const share = (i) => {
      const bound = facts.fact("bound", i),
        objective = facts.fact("objective", i);
      return bound === null || !objective ? null : Math.min(1, Math.max(0, bound / objective));
    };
    all.push({
      name: "bound",
      label: "Lower bound",
      value: share,
      place: (value) => value,
      show: percent,
      ticks: [0, 0.25, 0.5, 0.75, 1],
    });
  }
  const largest = Math.log(tree.size[0]) || 1;
  all.push({
    name: "size",
    label: "Number of classes",
    value: (i) => tree.size[i],
    place: (value) => Math.log(value) / largest,
    show: count,
    ticks: [1, Math.round(Math.sqrt(tree.size[0])), tree.size[0]],
  });
  return all;
}

// Sequential scales whose lightness only falls (light) or only rises (dark), so that they do not depend on colour vision.
const RAMPS = {
  light: ["#f4efd6", "#bcdcc0", "#74bdbd", "#3a8fb7", "#2f5f9e", "#2b3270"],
  dark: ["#28304f", "#2d4f86", "#2e78a0", "#3fa3a6", "#86ccab", "#ecefb9"],
};
const SHADES = 64,
  NO_SHADE = 255;

function shadesOf(ramp, none) {
  const stops = ramp.map((text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16)));
  const shades = Array.from({ length: SHADES }, (_, k) => {
    const at = (k / (SHADES - 1)) * (stops.length - 1),
      low = Math.min(Math.floor(at), stops.length - 2);
    const rgb = stops[low].map((from, j) => Math.round(from + (at - low) * (stops[low + 1][j] - from)));
    const [r, g, b] = rgb.map((v) => (v / 255) ** 2.2),
      light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    return { fill: `rgb(${rgb.join(" ")})`, ink: light > 0.3 ? "#12202e" : "#ffffff" };
  });
  shades[NO_SHADE] = none;
  return shades;
}

// The shade of each node; NO_SHADE where the measure has no value.
function shadeNumbers(tree, measure) {
  return Uint8Array.from({ length: tree.n }, (_, i) => {
    const value = measure.value(i);
    if (value === null || value === undefined) return NO_SHADE;
    const place = measure.place(value);
    return Number.isFinite(place) ? Math.round(Math.min(1, Math.max(0, place)) * (SHADES - 1)) : NO_SHADE;
  });
}

// The mean shade of the nodes below each node, or its own at a leaf.
function meanShades(tree, shade) {
  const sum = new Float64Array(tree.n),
    shaded = new Float64Array(tree.n),
    mean = new Uint8Array(tree.n);
  for (let i = tree.n - 1; i >= 0; i--) {
    mean[i] = shaded[i] ? Math.round(sum[i] / shaded[i]) : shade[i];
    const above = tree.parent[i];
    if (above < 0) continue;
    const counts = shade[i] === NO_SHADE ? 0 : 1;
    sum[above] += sum[i] + counts * shade[i];
    shaded[above] += shaded[i] + counts;
  }
  return mean;
}
