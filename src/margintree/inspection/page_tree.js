// The tree over the classes as flat arrays, and the positions of its nodes when subtrees are collapsed.
// Nodes are numbered in preorder: the left child of node i is i + 1, its subtree is i .. end[i] - 1.

const data = JSON.parse(document.getElementById("data").textContent);

class ClassTree {
  constructor(leaves) {
    const n = leaves.length;
    this.n = n;
    this.leafClass = Int32Array.from(leaves);
    for (const name of ["parent", "right"]) this[name] = new Int32Array(n).fill(-1);
    for (const name of ["end", "size", "depth", "first", "internal"]) this[name] = new Int32Array(n);
    this.leafOfClass = new Int32Array((n + 1) / 2);
    const roots = [];
    for (let i = n - 1; i >= 0; i--) {
      this.end[i] = i + 1;
      this.size[i] = 1;
      if (!this.isLeaf(i)) {
        const left = roots.pop(),
          right = roots.pop();
        this.right[i] = right;
        this.parent[left] = this.parent[right] = i;
        this.end[i] = this.end[right];
        this.size[i] = this.size[left] + this.size[right];
      }
      roots.push(i);
    }
    let leavesBefore = 0;
    for (let i = 0; i < n; i++) {
      this.depth[i] = i ? this.depth[this.parent[i]] + 1 : 0;
      this.first[i] = leavesBefore;
      this.internal[i] = i - leavesBefore;
      if (this.isLeaf(i)) ((this.leafOfClass[this.leafClass[i]] = i), leavesBefore++);
    }
    this.maxDepth = this.depth.reduce((a, b) => Math.max(a, b), 0);
  }

  isLeaf(i) {
    return this.leafClass[i] >= 0;
  }

  contains(i, other) {
    return i <= other && other < this.end[i];
  }

  ancestors(i) {
    const path = [];
    for (let at = i; at >= 0; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  // The lowest common ancestor of two nodes.
  meeting(i, j) {
    let at = Math.min(i, j);
    while (!this.contains(at, Math.max(i, j))) at = this.parent[at];
    return at;
  }

  *leavesBelow(i) {
    for (let at = i; at < this.end[i]; at++) if (this.isLeaf(at)) yield at;
  }

  // Some leaves below a node, evenly spaced in the order of the tree.
  someLeaves(i, count) {
    const wanted = Math.min(count, this.size[i]),
      found = [];
    for (let k = 0; k < wanted; k++) found.push(this.leafAt(i, Math.floor(((k + 0.5) * this.size[i]) / wanted)));
    return found;
  }

  leafAt(i, rank) {
    while (!this.isLeaf(i)) {
      const left = this.size[i + 1];
      if (rank < left) i += 1;
      else ((rank -= left), (i = this.right[i]));
    }
    return i;
  }
}

// A leaf and a collapsed subtree take one slot each; slots are numbered from the top.
class Layout {
  constructor(tree) {
    this.tree = tree;
    this.collapsed = new Uint8Array(tree.n);
    this.hiddenBy = new Int32Array(tree.n);
    this.top = new Float64Array(tree.n);
    this.bottom = new Float64Array(tree.n);
    this.version = 0;
    this.place();
    this.settle();
  }

  place() {
    const { tree, collapsed, hiddenBy } = this,
      top = new Float64Array(tree.n),
      bottom = new Float64Array(tree.n);
    this.formerTop = this.top.slice();
    this.formerBottom = this.bottom.slice();
    hiddenBy.fill(-1);
    let slots = 0;
    for (let i = 0; i < tree.n; i++) {
      top[i] = slots;
      if (collapsed[i]) {
        // Hidden nodes keep their share of the slot, from which they expand.
        const step = 1 / tree.size[i];
        for (let j = i + 1; j < tree.end[i]; j++) {
          hiddenBy[j] = i;
          top[j] = slots + step * (tree.first[j] - tree.first[i]);
          bottom[j] = top[j] + step * tree.size[j];
        }
        bottom[i] = ++slots;
        i = tree.end[i] - 1;
      } else if (tree.isLeaf(i)) bottom[i] = ++slots;
    }
    for (let i = tree.n - 1; i >= 0; i--) if (hiddenBy[i] < 0 && !this.isEnd(i)) bottom[i] = bottom[tree.right[i]];
    this.slots = slots;
    this.finalTop = top;
    this.finalBottom = bottom;
    this.version++;
  }

  // Interpolate between the former positions (0) and the new ones (1).
  move(share) {
    for (let i = 0; i < this.tree.n; i++) {
      this.top[i] = this.formerTop[i] + share * (this.finalTop[i] - this.formerTop[i]);
      this.bottom[i] = this.formerBottom[i] + share * (this.finalBottom[i] - this.formerBottom[i]);
    }
  }

  settle() {
    this.top.set(this.finalTop);
    this.bottom.set(this.finalBottom);
  }

  isEnd(i) {
    return this.tree.isLeaf(i) || this.collapsed[i] === 1;
  }

  shown(i) {
    return this.hiddenBy[i] < 0 ? i : this.hiddenBy[i];
  }

  setCollapsed(i, on) {
    this.collapsed[i] = on ? 1 : 0;
    this.place();
  }

  // Collapse everything at a depth, or nothing for Infinity.
  cutAt(depth) {
    for (let i = 0; i < this.tree.n; i++)
      this.collapsed[i] = this.tree.depth[i] === depth && !this.tree.isLeaf(i) ? 1 : 0;
    this.place();
  }

  open(i) {
    let changed = false;
    for (const above of this.tree.ancestors(i).slice(0, -1))
      if (this.collapsed[above]) ((this.collapsed[above] = 0), (changed = true));
    if (changed) this.place();
    return changed;
  }

  // The lowest node that spans the slots.
  spanning(y0, y1) {
    const { tree, top, bottom } = this,
      slack = 0.02 * (y1 - y0);
    let i = 0;
    while (!this.isEnd(i)) {
      const child = y0 + slack >= top[tree.right[i]] ? tree.right[i] : i + 1;
      if (bottom[child] < y1 - slack || top[child] > y0 + slack) break;
      i = child;
    }
    return i;
  }

  // The node at a slot and a depth, or the leaf or collapsed node above it.
  at(slot, depth) {
    if (slot < 0 || slot >= this.slots || depth < 0) return -1;
    let i = 0;
    while (!this.isEnd(i) && this.tree.depth[i] < depth) i = slot < this.bottom[i + 1] ? i + 1 : this.tree.right[i];
    return i;
  }
}
