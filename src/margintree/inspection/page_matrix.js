// The confusion matrix with the classes in the order of the tree, beside the icicle of the same classes.
// A collapsed subtree is one row and one column.

const SMALLEST_CELL = 2; // Pixels; smaller cells share a place.

class Matrix {
  constructor(layout, facts, icicle) {
    this.layout = layout;
    this.facts = facts;
    this.icicle = icicle;
  }

  // Numbers of rows by the shown nodes of their true and predicted classes.
  cells() {
    const { layout, facts } = this,
      { tree } = layout;
    if (this.version === layout.version) return this.known;
    const together = new Map(),
      total = new Map();
    for (const [truth, predicted, number] of facts.confusion.entries) {
      const from = layout.shown(tree.leafOfClass[truth]),
        to = layout.shown(tree.leafOfClass[predicted]),
        key = from * tree.n + to;
      const cell = together.get(key);
      if (cell) cell.count += number;
      else together.set(key, { truth: from, predicted: to, count: number });
      total.set(from, (total.get(from) || 0) + number);
    }
    this.known = [...together.values()];
    // The largest first: where cells share a place, only the first one is drawn.
    for (const cell of this.known) cell.share = cell.count / total.get(cell.truth);
    this.known.sort((a, b) => b.share - a.share);
    this.version = layout.version;
    return this.known;
  }

  // The strip of the icicle and the square of the matrix within an area.
  parts(area, view) {
    const narrow = Math.min(150, 0.22 * area.w),
      high = this.roomAbove(area, view);
    const side = Math.max(40, Math.min(area.w - narrow - 8, area.h - high - 2)),
      strip = Math.min(330, area.w - side - 8);
    const y = area.y + high;
    return {
      square: { x: area.x + strip + 6, y, w: side, h: side, high },
      icicle: { x: area.x, y, w: strip, h: side },
    };
  }

  // The name of a column: a class, or how many classes are collapsed there.
  name(slot) {
    const i = this.layout.at(slot, Infinity);
    return this.layout.tree.isLeaf(i) ? this.facts.name(i) : `▸ ${count(this.layout.tree.size[i])}`;
  }

  // The height for the names of the columns, if there are few enough to name them.
  roomAbove(area, view) {
    if ((area.h - 74) / (view.y1 - view.y0) < 11) return 20;
    let longest = 0;
    for (let slot = Math.max(0, Math.floor(view.y0)); slot < Math.min(this.layout.slots, view.y1); slot++)
      longest = Math.max(longest, this.name(slot).length);
    return Math.min(62, Math.max(34, 18 + 6 * longest));
  }

  draw(ctx, area, view, scene) {
    const { square, icicle } = this.parts(area, view);
    this.icicle.draw(ctx, icicle, view, scene);
    this.names(ctx, square, view, scene);
    ctx.save();
    ctx.beginPath();
    ctx.rect(square.x, square.y, square.w, square.h);
    ctx.clip();
    ctx.fillStyle = scene.colours.empty;
    ctx.fillRect(square.x, square.y, square.w, square.h);
    this.blocks(ctx, square, view, scene);
    const scale = square.h / (view.y1 - view.y0);
    this.fill(ctx, square, view, scene, scale);
    ctx.globalAlpha = 1;
    this.numbers(ctx, square, view, scene, scale);
    this.chosen(ctx, square, view, scene, scale);
    ctx.restore();
  }

  fill(ctx, square, view, scene, scale) {
    const { top, bottom } = this.layout,
      places = Math.ceil(square.w / SMALLEST_CELL) + 1;
    const taken = scale < SMALLEST_CELL ? new Uint8Array(places * places) : null;
    const gap = scale > 8 ? 1 : 0;
    for (const { truth, predicted, share } of this.cells()) {
      let y = (top[truth] - view.y0) * scale,
        x = (top[predicted] - view.y0) * scale;
      let high = (bottom[truth] - top[truth]) * scale - gap,
        wide = (bottom[predicted] - top[predicted]) * scale - gap;
      if (y >= square.h || x >= square.w || y + high <= 0 || x + wide <= 0) continue;
      if (taken && high < SMALLEST_CELL && wide < SMALLEST_CELL) {
        const row = Math.floor(Math.max(0, y) / SMALLEST_CELL),
          column = Math.floor(Math.max(0, x) / SMALLEST_CELL);
        if (taken[row * places + column]) continue;
        taken[row * places + column] = 1;
        y = row * SMALLEST_CELL;
        x = column * SMALLEST_CELL;
      }
      high = Math.max(SMALLEST_CELL, high);
      wide = Math.max(SMALLEST_CELL, wide);
      ctx.fillStyle = truth === predicted ? scene.colours.hit : scene.colours.error;
      ctx.globalAlpha = 0.18 + 0.82 * Math.sqrt(share);
      ctx.fillRect(square.x + x, square.y + y, wide, high);
    }
  }

  // Nodes as squares along the diagonal.
  blocks(ctx, square, view, scene) {
    const { layout } = this,
      { tree, top, bottom } = layout,
      scale = square.h / (view.y1 - view.y0);
    ctx.strokeStyle = scene.colours.block;
    ctx.lineWidth = 1;
    for (let i = 0; i < tree.n;) {
      const a = (top[i] - view.y0) * scale,
        side = (bottom[i] - top[i]) * scale;
      if (side < 14 || a > square.h || a + side < 0) {
        i = tree.end[i];
        continue;
      }
      ctx.strokeRect(
        Math.round(square.x + a) + 0.5,
        Math.round(square.y + a) + 0.5,
        Math.round(side),
        Math.round(side),
      );
      i = layout.isEnd(i) ? tree.end[i] : i + 1;
    }
  }

  numbers(ctx, square, view, scene, scale) {
    if (scale < 22) return;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    const { top } = this.layout;
    for (const { truth, predicted, count: rows, share } of this.cells()) {
      const y = (top[truth] + 0.5 - view.y0) * scale,
        x = (top[predicted] + 0.5 - view.y0) * scale;
      if (y < 0 || x < 0 || y > square.h || x > square.w) continue;
      ctx.fillStyle = share > 0.25 ? scene.colours.strong : scene.colours.ink;
      this.icicle.text(
        ctx,
        count(rows),
        square.x + x,
        square.y + y,
        scale - 4,
        Math.round(Math.min(13, 0.42 * scale)),
        500,
      );
    }
    ctx.textAlign = "left";
  }

  names(ctx, square, view, scene) {
    const { layout, facts } = this,
      scale = square.w / (view.y1 - view.y0);
    ctx.fillStyle = scene.colours.muted;
    ctx.textBaseline = "middle";
    this.icicle.text(ctx, "true class ↓", square.x - 90, square.y - 10, 84, 11, 500);
    if (square.high === 20) {
      this.icicle.text(ctx, "predicted class →", square.x + 2, square.y - 10, square.w, 11, 500);
      return;
    }
    this.icicle.text(ctx, "predicted →", square.x - 90, square.y - 24, 84, 11, 500);
    const size = Math.round(Math.min(12, 0.8 * scale));
    for (let slot = Math.max(0, Math.floor(view.y0)); slot < Math.min(layout.slots, Math.ceil(view.y1)); slot++) {
      const x = square.x + (slot + 0.5 - view.y0) * scale;
      if (x < square.x || x > square.x + square.w) continue;
      ctx.save();
      ctx.translate(x, square.y - 5);
      ctx.rotate(-Math.PI / 2.6);
      this.icicle.text(ctx, this.name(slot), 0, 0, square.high, size, 400);
      ctx.restore();
    }
  }

  // The square of the node, and the two blocks in which its sides are confused with each other.
  chosen(ctx, square, view, scene, scale) {
    if (scene.selected < 0) return;
    const i = this.layout.shown(scene.selected),
      { top, bottom } = this.layout,
      { tree } = this.layout;
    const at = (slot) => (slot - view.y0) * scale,
      a = at(top[i]),
      b = at(bottom[i]);
    ctx.strokeStyle = scene.colours.select;
    ctx.lineWidth = 2;
    ctx.strokeRect(square.x + a, square.y + a, b - a, b - a);
    if (this.layout.isEnd(i)) return;
    const middle = at(top[tree.right[i]]);
    ctx.setLineDash([4, 3]);
    ctx.strokeRect(square.x + middle, square.y + a, b - middle, middle - a);
    ctx.strokeRect(square.x + a, square.y + middle, middle - a, b - middle);
    ctx.setLineDash([]);
  }

  // The cell at a point: its two nodes and its number of rows, or null outside of the square.
  at(px, py, area, view) {
    const { square } = this.parts(area, view),
      scale = square.h / (view.y1 - view.y0);
    const slot = (v) => view.y0 + v / scale;
    if (px < square.x || py < square.y || px > square.x + square.w || py > square.y + square.h) return null;
    const truth = this.layout.at(slot(py - square.y), Infinity),
      predicted = this.layout.at(slot(px - square.x), Infinity);
    if (truth < 0 || predicted < 0) return null;
    const cell = this.cells().find((one) => one.truth === truth && one.predicted === predicted);
    return { truth, predicted, count: cell ? cell.count : 0, share: cell ? cell.share : 0 };
  }
}
