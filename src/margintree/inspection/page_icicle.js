// The icicle: one column per depth, one row per class; the height of a node is its number of classes.
// Zooming moves along the classes only. The columns follow: those above what is shown slide out to the left.

const LEVELS_KEPT = 0.3; // Part of the parent column that stays visible, for orientation.
const SMALL_ROW = 4; // Pixels; lower cells have no label, and cells within one pixel are drawn in their mean colour.
const DIMMED = 0.3; // Opacity of nodes that are not on the path of the chosen row.

// Columns get narrower with the depth, because cells do.
const flow = (t) => (t < 0 ? t : 0.4 * t + 2.4 * (1 - Math.exp(-t / 4)));

// Low cells of one column, collected until they fill a pixel.
class Column {
  constructor(from, width) {
    Object.assign(this, { from, width: width - (width > 4 ? 1 : 0), start: 0, end: -1, sum: 0, shaded: 0 });
  }

  add(ctx, scene, shade, a, b) {
    if (a > this.end + 0.5) {
      this.draw(ctx, scene);
      this.start = a;
    }
    if (shade !== NO_SHADE) ((this.sum += shade * (b - a)), (this.shaded += b - a));
    this.end = b;
    if (b - this.start >= 1) this.draw(ctx, scene);
  }

  draw(ctx, scene) {
    if (this.end > this.start) {
      ctx.fillStyle = scene.shades[this.shaded ? Math.round(this.sum / this.shaded) : NO_SHADE].fill;
      const height = this.end - this.start;
      ctx.fillRect(this.from, this.start, this.width, height > 2.5 ? height - 0.5 : height);
    }
    this.start = this.end;
    this.sum = this.shaded = 0;
  }
}

class Icicle {
  constructor(layout, facts) {
    this.layout = layout;
    this.facts = facts;
    this.widths = new Map();
    this.deepest = layout.tree.maxDepth;
  }

  // The width for the names of the deepest classes, as soon as they are legible.
  gutter(area, view) {
    const row = area.h / (view.y1 - view.y0),
      share = Math.min(1, Math.max(0, (row - 4) / 6));
    return Math.min(28, 0.1 * area.w) * (1 - share) + Math.min(230, Math.max(84, 0.24 * area.w)) * share;
  }

  columns(area, view) {
    const scale = (area.w - this.gutter(area, view)) / flow(Math.max(0.7, view.deepest - view.x0));
    return (depth) => area.x + scale * flow(depth - view.x0);
  }

  nodeAt(px, py, area, view) {
    const x = this.columns(area, view),
      slot = view.y0 + ((py - area.y) / area.h) * (view.y1 - view.y0);
    let depth = 0;
    while (depth < this.layout.tree.maxDepth && x(depth + 1) <= px) depth++;
    return this.layout.at(slot, depth);
  }

  draw(ctx, area, view, scene) {
    const { layout } = this,
      { tree, top, bottom } = layout;
    const x = this.columns(area, view),
      scale = area.h / (view.y1 - view.y0),
      right = area.x + area.w;
    const edges = Array.from({ length: tree.maxDepth + 2 }, (_, depth) =>
      Math.min(right, Math.max(area.x - 2, x(depth))),
    );
    const last = Math.min(tree.maxDepth, Math.ceil(view.deepest)),
      large = [];
    const columns = edges
      .slice(0, last + 1)
      .map((from, d) => new Column(from, (d === last ? right : edges[d + 1]) - from));
    this.deepest = 0;
    ctx.save();
    ctx.beginPath();
    ctx.rect(area.x, area.y, area.w, area.h);
    ctx.clip();
    if (scene.path) ctx.globalAlpha = DIMMED;
    for (let i = 0; i < tree.n;) {
      const a = area.y + (top[i] - view.y0) * scale,
        b = area.y + (bottom[i] - view.y0) * scale;
      const depth = tree.depth[i],
        isEnd = layout.isEnd(i);
      if (b <= area.y || a >= area.y + area.h) {
        i = tree.end[i];
        continue;
      }
      if (depth > this.deepest) this.deepest = depth;
      // A subtree below one pixel is drawn as a whole, so that the cost of a frame is bounded for any number of classes.
      const isLast = isEnd || b - a < 1;
      if (b - a >= SMALL_ROW) large.push([i, a, b, edges[depth], isEnd ? right : edges[depth + 1]]);
      else {
        const own = Math.min(depth, last);
        columns[own].add(ctx, scene, scene.shade[i], a, b);
        if (isLast) for (let d = own + 1; d <= last; d++) columns[d].add(ctx, scene, scene.below[i], a, b);
      }
      i = isLast ? tree.end[i] : i + 1;
    }
    for (const column of columns) column.draw(ctx, scene);
    for (const cell of large) this.cell(ctx, area, scene, ...cell);
    ctx.globalAlpha = 1;
    this.marks(ctx, area, view, scene, edges, scale);
    ctx.restore();
  }

  cell(ctx, area, scene, i, a, b, from, to) {
    if (to <= area.x) return;
    const isEnd = this.layout.isEnd(i),
      gap = b - a > 9 ? 1 : 0.5,
      radius = Math.min(3.5, (b - a) / 5, (to - from) / 5);
    ctx.globalAlpha = !scene.path || scene.path.has(i) ? 1 : DIMMED;
    ctx.fillStyle = scene.shades[scene.shade[i]].fill;
    ctx.beginPath();
    ctx.roundRect(from, a + gap / 2, Math.max(0.5, to - from - (isEnd ? 0 : 1.5)), b - a - gap, Math.max(0, radius));
    ctx.fill();
    if (b - a >= 11) this.label(ctx, area, scene, i, a, b, Math.max(from, area.x), to);
  }

  // The first of some texts that fits.
  fitting(ctx, texts, room, size, weight) {
    return texts.find((text) => this.width(ctx, text, size, weight) <= room);
  }

  // The probability of the step to a node on the path of a row, else its measure.
  said(scene, i) {
    const value = scene.measure.value(i);
    return scene.path?.get(i) ?? (value === null || scene.measure.name === "size" ? null : scene.measure.show(value));
  }

  // The lines of a cell: text, weight, opacity.
  lines(ctx, scene, i, room, size, most) {
    const { tree, collapsed } = this.layout,
      { facts } = this;
    if (tree.isLeaf(i)) return [[facts.name(i), 500, 1]];
    const title = this.fitting(
      ctx,
      [facts.title(i), count(tree.size[i]), short(tree.size[i])].map((text) => (collapsed[i] ? `▸ ${text}` : text)),
      room,
      size,
      600,
    );
    if (!title) return [];
    const lines = [[title, 600, 1]];
    const words = this.said(scene, i),
      said = words && this.fitting(ctx, [words, words.replace("p = ", "")], room, size, 400);
    if (said && most > 1) lines.push([said, 400, 0.9]);
    if (most > 4 && room > 60)
      for (const leaf of tree.someLeaves(i, Math.min(4, most - 2))) lines.push([facts.name(leaf), 400, 0.7]);
    return lines;
  }

  label(ctx, area, scene, i, a, b, from, to) {
    const { tree } = this.layout,
      // Narrow columns have less room beside the text, or a phone would show no text at all.
      side = to - from < 50 ? 3 : 7,
      room = to - from - 2 * side,
      seenTop = Math.max(a, area.y),
      seenBottom = Math.min(b, area.y + area.h);
    if (room < 10 || seenBottom - seenTop < 9) return;
    // Whole sizes only, because the browser loads a font for each size.
    const size = Math.round(Math.min(13, Math.max(9, 0.74 * (b - a)))),
      step = 1.3 * size,
      middle = (seenTop + seenBottom) / 2;
    const lines = this.lines(ctx, scene, i, room, size, Math.floor((seenBottom - seenTop - 4) / step)),
      alpha = ctx.globalAlpha;
    ctx.textBaseline = "middle";
    ctx.fillStyle = alpha < 1 ? scene.colours.muted : scene.shades[scene.shade[i]].ink;
    let used = 0;
    lines.forEach(([text, weight, strength], k) => {
      ctx.globalAlpha = alpha * strength;
      used = this.text(ctx, text, from + side, middle + (k - (lines.length - 1) / 2) * step, room, size, weight);
    });
    const said = tree.isLeaf(i) ? this.said(scene, i) : null;
    if (this.layout.collapsed[i] && lines.length === 1 && room - used > 70) {
      ctx.globalAlpha = 0.7 * alpha;
      const named = tree
        .someLeaves(i, 4)
        .map((leaf) => isolated(this.facts.name(leaf)))
        .join(", ");
      this.text(ctx, named, from + 18 + used, middle, room - used - 10, size, 400);
    }
    if (said && used + this.width(ctx, said, size, 400) + 24 < room) {
      ctx.textAlign = "right";
      ctx.globalAlpha = 0.8 * alpha;
      this.text(ctx, said, to - 8, middle, room, size, 400);
      ctx.textAlign = "left";
    }
    ctx.globalAlpha = alpha;
  }

  // Outlines of the selected node and of the leaf of the row's true class, and ticks for search results.
  marks(ctx, area, view, scene, edges, scale) {
    const { layout } = this,
      { tree, top, bottom } = layout,
      right = area.x + area.w;
    const outline = (node, colour, thick, dash = []) => {
      const i = layout.shown(node),
        a = area.y + (top[i] - view.y0) * scale,
        b = area.y + (bottom[i] - view.y0) * scale;
      if (b < area.y || a > area.y + area.h) return;
      const from = edges[tree.depth[i]],
        to = layout.isEnd(i) ? right : edges[tree.depth[i] + 1] - 1.5;
      ctx.strokeStyle = colour;
      ctx.lineWidth = thick;
      ctx.setLineDash(dash);
      ctx.beginPath();
      ctx.roundRect(
        from + thick / 2,
        a + thick / 2,
        Math.max(1, to - from - thick),
        Math.max(1, b - a - thick),
        Math.min(4, (b - a) / 4),
      );
      ctx.stroke();
      ctx.setLineDash([]);
    };
    if (scene.path) for (const i of scene.path.keys()) outline(i, scene.colours.path, 2);
    if (scene.trueLeaf >= 0) outline(scene.trueLeaf, scene.colours.error, 2, [5, 3]);
    ctx.fillStyle = scene.colours.path;
    for (const leaf of scene.found) {
      const i = layout.shown(leaf),
        y = area.y + ((top[i] + bottom[i]) / 2 - view.y0) * scale;
      if (y >= area.y && y <= area.y + area.h) ctx.fillRect(right - 7, y - 1, 7, 2);
    }
    if (scene.hovered >= 0 && scene.hovered !== scene.selected) outline(scene.hovered, scene.colours.ink, 1);
    if (scene.selected >= 0) {
      outline(scene.selected, scene.colours.surface, 4);
      outline(scene.selected, scene.colours.select, 2.5);
    }
  }

  width(ctx, text, size, weight) {
    const key = `${weight}${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 20000) this.widths.clear();
      ctx.font = `${weight} 100px ${FONT}`;
      this.widths.set(key, (width = ctx.measureText(isolated(text)).width / 100));
    }
    return width * size;
  }

  // Draws a text, shortened to the available width; returns its width.
  text(ctx, text, x, y, room, size, weight) {
    let width = this.width(ctx, text, size, weight);
    if (width > room) {
      const letters = Array.from(text),
        cut = (kept) => `${letters.slice(0, kept).join("").trimEnd()}…`;
      let kept = Math.floor((letters.length * room) / width);
      while (kept > 0 && this.width(ctx, cut(kept), size, weight) > room) kept--;
      if (kept < 1) return 0;
      text = cut(kept);
      width = room;
    }
    ctx.font = `${weight} ${size}px ${FONT}`;
    ctx.fillText(isolated(text), x, y);
    return width;
  }
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif';
