// The tree as a text outline, for screen readers and for people who prefer text. Items are created when their parent is
// expanded, so that the cost does not depend on the size of the tree.

class Outline {
  constructor(home, tree, facts, act) {
    Object.assign(this, { home, tree, facts, act, items: new Map() });
    this.root = element("ul", { role: "tree", "aria-label": "Class tree", class: "outline" });
    this.root.addEventListener("keydown", (event) => this.pressed(event));
    home.append(
      element("p", { class: "muted", textContent: "Arrow keys move and open; Enter zooms the picture." }),
      this.root,
    );
  }

  item(i) {
    const { tree, facts } = this,
      isLeaf = tree.isLeaf(i),
      accuracy = facts.accuracy(i);
    const text = element(
      "span",
      { class: "text" },
      isLeaf ? label(facts.name(i)) : element("b", { textContent: facts.title(i) }),
    );
    if (!isLeaf)
      text.append(
        " ",
        element(
          "span",
          { class: "muted" },
          ...tree.someLeaves(i, 2).flatMap((leaf, k) => [k ? ", " : "", label(facts.name(leaf))]),
          tree.size[i] > 2 ? " …" : "",
        ),
      );
    const made = element(
      "li",
      {
        role: "treeitem",
        "aria-level": tree.depth[i] + 1,
        "aria-setsize": i ? 2 : 1,
        "aria-posinset": !i || tree.parent[i] === i - 1 ? 1 : 2,
        "aria-selected": "false",
        // An item is named by its own line only, not by the items below it.
        "aria-labelledby": `line-${i}`,
        tabIndex: -1,
      },
      element(
        "div",
        { class: "line", id: `line-${i}`, onclick: () => this.clicked(i) },
        element("span", { class: "twist", "aria-hidden": "true" }),
        text,
        accuracy === null ? null : element("small", { textContent: percent(accuracy) }),
      ),
    );
    if (!isLeaf) made.setAttribute("aria-expanded", "false");
    made.dataset.node = i;
    this.items.set(i, made);
    return made;
  }

  isOpen(i) {
    return this.items.get(i)?.getAttribute("aria-expanded") === "true";
  }

  open(i) {
    if (this.tree.isLeaf(i) || this.isOpen(i)) return;
    const item = this.items.get(i);
    item.setAttribute("aria-expanded", "true");
    item.append(element("ul", { role: "group" }, this.item(i + 1), this.item(this.tree.right[i])));
  }

  close(i) {
    if (!this.isOpen(i)) return;
    const item = this.items.get(i),
      group = item.lastElementChild;
    for (const inside of group.querySelectorAll("[role=treeitem]")) this.items.delete(Number(inside.dataset.node));
    group.remove();
    item.setAttribute("aria-expanded", "false");
  }

  // Select a node and expand the nodes above it.
  choose(i, focus = false) {
    if (!this.items.size) this.root.append(this.item(0));
    const path = this.tree.ancestors(i);
    for (const above of path.slice(0, -1)) this.open(above);
    const former = this.items.get(this.chosen);
    if (former) (former.setAttribute("aria-selected", "false"), (former.tabIndex = -1));
    this.chosen = i;
    const item = this.items.get(i);
    item.setAttribute("aria-selected", "true");
    item.tabIndex = 0;
    if (focus) item.focus({ preventScroll: true });
    item.firstElementChild.scrollIntoView({ block: "nearest" });
  }

  clicked(i) {
    if (this.chosen === i && !this.tree.isLeaf(i)) this.isOpen(i) ? this.close(i) : this.open(i);
    else this.open(i);
    this.act.select(i, true);
    this.items.get(i).focus({ preventScroll: true });
  }

  pressed(event) {
    const i = this.chosen,
      shown = () => [...this.root.querySelectorAll("[role=treeitem]")];
    const beside = (by) => {
      const all = shown();
      return Number(all[Math.min(all.length - 1, Math.max(0, all.indexOf(this.items.get(i)) + by))].dataset.node);
    };
    const go = {
      ArrowDown: () => beside(1),
      ArrowUp: () => beside(-1),
      ArrowRight: () => (this.tree.isLeaf(i) ? i : this.isOpen(i) ? i + 1 : (this.open(i), i)),
      ArrowLeft: () => (this.isOpen(i) ? (this.close(i), i) : Math.max(0, this.tree.parent[i])),
      Home: () => 0,
      End: () => Number(shown().at(-1).dataset.node),
      Enter: () => (this.act.zoomTo(i), i),
    }[event.key];
    if (!go) return;
    event.preventDefault();
    event.stopPropagation();
    const next = go();
    this.act.select(next, false);
    this.choose(next, true);
  }
}
