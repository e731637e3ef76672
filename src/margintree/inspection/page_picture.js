// The canvas: the part of the tree that it shows, animations, and events of the mouse and of touch screens.

const PADDING = 2;
const FEWEST_SLOTS = 3; // No zoom beyond so many classes.
const CONTEXT = 10; // Classes around a class that one zooms to.
const EASE = 80; // Milliseconds in which two thirds of a motion are done.
const FOLD = 260; // Milliseconds of collapsing.

class Picture {
  constructor(canvas, layout, facts, scene, act) {
    Object.assign(this, { canvas, layout, facts, scene, act, mode: "tree", pointers: new Map(), foldedAt: null });
    this.context = canvas.getContext("2d", { alpha: false });
    this.icicle = new Icicle(layout, facts);
    this.matrix = facts.confusion ? new Matrix(layout, facts, this.icicle) : null;
    this.view = { y0: 0, y1: layout.slots, x0: 0, deepest: layout.tree.maxDepth };
    this.goal = { y0: 0, y1: layout.slots };
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    this.resize();
    this.listen();
  }

  resize() {
    const box = this.canvas.parentElement.getBoundingClientRect(),
      ratio = window.devicePixelRatio || 1;
    this.width = Math.max(50, box.width);
    this.height = Math.max(50, box.height);
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint();
  }

  get area() {
    return { x: PADDING, y: PADDING, w: this.width - 2 * PADDING, h: this.height - 2 * PADDING };
  }

  // Where the classes run from top to bottom, in either mode.
  get axis() {
    return this.mode === "tree" ? this.area : this.matrix.parts(this.area, this.view).square;
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame((now) => {
      this.waiting = false;
      if (this.advance(now)) this.redraw();
      this.paint();
    });
  }

  // Move towards the goal; true until it is reached.
  advance(now) {
    const { view, goal, layout } = this,
      elapsed = Math.min(60, now - (this.last ?? now - 16));
    const share = this.still.matches ? 1 : 1 - Math.exp(-elapsed / EASE);
    this.last = now;
    let moving = false;
    if (this.foldedAt !== null) {
      this.foldedAt ||= now;
      const done = this.still.matches ? 1 : Math.min(1, (now - this.foldedAt) / FOLD);
      if (done < 1) (layout.move(done * done * (3 - 2 * done)), (moving = true));
      else (layout.settle(), (this.foldedAt = null));
    }
    const node = layout.spanning(goal.y0, goal.y1),
      depth = layout.tree.depth[node];
    goal.x0 = node === 0 ? 0 : Math.max(0, depth - (layout.isEnd(node) ? 1 : LEVELS_KEPT));
    goal.deepest = Math.max(goal.x0 + 1, this.icicle.deepest);
    for (const name of ["y0", "y1", "x0", "deepest"]) {
      const rest = goal[name] - view[name],
        least = name[0] === "y" ? 1e-4 * (goal.y1 - goal.y0) : 2e-3;
      if (Math.abs(rest) <= least) view[name] = goal[name];
      else ((view[name] += share * rest), (moving = true));
    }
    if (!moving) this.last = null;
    return moving;
  }

  paint() {
    const { context, scene } = this;
    context.fillStyle = scene.colours.surface;
    context.fillRect(0, 0, this.width + 1, this.height + 1);
    (this.mode === "tree" ? this.icicle : this.matrix).draw(context, this.area, this.view, scene);
    this.canvas.dataset.view = `${this.view.y0.toFixed(2)} ${this.view.y1.toFixed(2)}`;
  }

  // Show the slots y0 to y1, or as much as there is.
  show(y0, y1, atOnce = false) {
    const { slots } = this.layout,
      span = Math.min(slots, Math.max(Math.min(FEWEST_SLOTS, slots), y1 - y0));
    const middle = (y0 + y1) / 2,
      start = Math.min(slots - span, Math.max(0, middle - span / 2));
    Object.assign(this.goal, { y0: start, y1: start + span });
    if (atOnce) Object.assign(this.view, { y0: start, y1: start + span });
    this.redraw();
  }

  zoomTo(node) {
    const { layout } = this,
      { tree } = layout;
    let i = layout.shown(node);
    if (layout.isEnd(i))
      while (i > 0 && layout.finalBottom[i] - layout.finalTop[i] < Math.min(CONTEXT, layout.slots)) i = tree.parent[i];
    const end = layout.shown(node),
      { finalTop: top, finalBottom: bottom } = layout,
      most = this.axis.h / 15;
    // A class in a large group would be too small to read: its neighbours are enough.
    if (layout.isEnd(end) && bottom[i] - top[i] > most) {
      const middle = (top[end] + bottom[end]) / 2;
      this.show(middle - most / 2, middle + most / 2);
    } else this.show(top[i], bottom[i]);
  }

  showAll() {
    this.show(0, this.layout.slots);
  }

  isWhole() {
    return this.goal.y1 - this.goal.y0 >= this.layout.slots - 1e-6;
  }

  isSeen(i) {
    const { layout, goal } = this;
    return layout.finalTop[i] >= goal.y0 - 1e-6 && layout.finalBottom[i] <= goal.y1 + 1e-6;
  }

  // Bring a node into view, large enough to be seen.
  reveal(node) {
    const i = this.layout.shown(node),
      { finalTop: top, finalBottom: bottom } = this.layout,
      { goal } = this;
    const height = bottom[i] - top[i],
      span = Math.min(goal.y1 - goal.y0, (height * this.axis.h) / 13);
    if (this.isSeen(i) && span >= goal.y1 - goal.y0) return this.redraw();
    if (height >= span) return this.show(top[i], bottom[i]);
    const start = Math.min(Math.max(goal.y0, bottom[i] - 0.85 * span), top[i] - 0.15 * span);
    this.show(start, start + span);
  }

  // Keep the position while subtrees are collapsed and expanded.
  refold(change) {
    const { layout } = this;
    const wasWhole = this.isWhole();
    let about = layout.spanning(this.goal.y0, this.goal.y1);
    change();
    this.foldedAt = 0;
    if (wasWhole) return this.showAll();
    about = layout.shown(about);
    while (about > 0 && layout.isEnd(about)) about = layout.tree.parent[about];
    this.show(layout.finalTop[about], layout.finalBottom[about]);
  }

  zoomBy(factor, py = null) {
    const { y0, y1 } = this.goal,
      axis = this.axis,
      share = py === null ? 0.5 : Math.min(1, Math.max(0, (py - axis.y) / axis.h));
    const at = y0 + share * (y1 - y0),
      { slots } = this.layout;
    const span = Math.min(slots, Math.max(Math.min(FEWEST_SLOTS, slots), (y1 - y0) * factor));
    this.show(at - share * span, at + (1 - share) * span, py !== null);
  }

  panBy(pixels) {
    const { y0, y1 } = this.goal,
      by = (pixels / this.axis.h) * (y1 - y0);
    this.show(y0 - by, y1 - by, true);
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  // The node below a pointer; in the matrix the one where the two classes part.
  target({ x, y }) {
    if (this.mode === "tree") return { node: this.icicle.nodeAt(x, y, this.area, this.view) };
    const cell = this.matrix.at(x, y, this.area, this.view),
      { icicle } = this.matrix.parts(this.area, this.view);
    if (cell) return { node: this.layout.tree.meeting(cell.truth, cell.predicted), cell };
    return { node: x < icicle.x + icicle.w && y > icicle.y ? this.icicle.nodeAt(x, y, icicle, this.view) : -1 };
  }

  listen() {
    const { canvas, pointers } = this;
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const unit = event.deltaMode === 1 ? 16 : 1;
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
          this.panBy(-unit * (event.deltaX || event.deltaY));
        else this.zoomBy(Math.exp((unit * event.deltaY * (event.ctrlKey ? 4 : 1)) / 400), this.place(event).y);
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      const at = this.place(event);
      pointers.set(event.pointerId, at);
      this.pressed = pointers.size === 1 ? at : null;
    });
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    for (const name of ["pointerup", "pointercancel"])
      canvas.addEventListener(name, (event) => {
        if (name === "pointerup" && this.pressed && pointers.size === 1) this.act.clicked(this.target(this.pressed));
        pointers.delete(event.pointerId);
        this.pressed = null;
      });
    canvas.addEventListener("pointerleave", () => this.act.hovered(null));
  }

  moved(event) {
    const { pointers } = this,
      at = this.place(event),
      before = pointers.get(event.pointerId);
    if (!before) return this.act.hovered(this.target(at), at);
    if (pointers.size === 1) {
      if (this.pressed && Math.hypot(at.x - this.pressed.x, at.y - this.pressed.y) < 5) return;
      this.pressed = null;
      this.panBy(at.y - before.y);
    } else if (pointers.size === 2) {
      // Two fingers: zoom about the point between them.
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = (p) => Math.max(20, Math.hypot(p.x - other.x, p.y - other.y));
      this.zoomBy(apart(before) / apart(at), (at.y + other.y) / 2);
      this.panBy((at.y - before.y) / 2);
    }
    pointers.set(event.pointerId, at);
    this.act.hovered(null);
  }
}
