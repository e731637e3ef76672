// Search for a class by a part of its name: case and accents do not matter.

const MOST_LISTED = 40;
const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

class Search {
  constructor(input, list, tree, facts, act) {
    Object.assign(this, { input, list, tree, facts, act, leaves: [], active: -1 });
    input.addEventListener("input", () => this.find());
    input.addEventListener("focus", () => input.value && this.find());
    input.addEventListener("blur", () => this.close());
    input.addEventListener("keydown", (event) => this.pressed(event));
  }

  // Classes whose name starts with the text, then those with a word that does, then all others that contain it.
  matches(wanted) {
    this.folded ??= this.facts.names.map(folded);
    const kinds = [[], [], []];
    this.folded.forEach((name, k) => {
      const at = name.indexOf(wanted);
      if (at >= 0) kinds[at === 0 ? 0 : /[\p{L}\p{N}]/u.test(name[at - 1]) ? 2 : 1].push(k);
    });
    return kinds.flat();
  }

  find() {
    performance.clearMarks("search");
    performance.mark("search");
    const wanted = folded(this.input.value.trim());
    this.leaves = wanted ? this.matches(wanted).map((k) => this.tree.leafOfClass[k]) : [];
    const shown = this.leaves.slice(0, MOST_LISTED),
      more = this.leaves.length - shown.length;
    this.list.replaceChildren(
      ...shown.map((leaf, k) => this.option(leaf, k)),
      ...(more
        ? [element("li", { class: "muted", role: "presentation", textContent: `and ${count(more)} more` })]
        : []),
      ...(wanted && !shown.length
        ? [element("li", { class: "muted", role: "presentation", textContent: "No matching class." })]
        : []),
    );
    this.list.hidden = !wanted;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.activate(shown.length ? 0 : -1);
    this.act.found(this.leaves);
    performance.clearMeasures("search");
    performance.measure("search", "search");
  }

  option(leaf, k) {
    const accuracy = this.facts.accuracy(leaf);
    return element(
      "li",
      {
        id: `hit-${k}`,
        role: "option",
        "aria-selected": "false",
        onpointerdown: (event) => {
          event.preventDefault();
          this.take(k);
        },
      },
      label(this.facts.name(leaf)),
      element("small", { textContent: accuracy === null ? `depth ${this.tree.depth[leaf]}` : percent(accuracy) }),
    );
  }

  activate(k) {
    document.getElementById(`hit-${this.active}`)?.setAttribute("aria-selected", "false");
    this.active = k;
    const option = document.getElementById(`hit-${k}`);
    if (!option) return this.input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", option.id);
  }

  take(k) {
    const leaf = this.leaves[k];
    if (leaf === undefined) return;
    this.close();
    this.act.goTo(leaf);
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  clear() {
    this.input.value = "";
    this.find();
  }

  pressed(event) {
    const last = Math.min(this.leaves.length, MOST_LISTED) - 1;
    const done = {
      ArrowDown: () => this.activate(Math.min(last, this.active + 1)),
      ArrowUp: () => this.activate(Math.max(0, this.active - 1)),
      Enter: () => this.take(this.active),
      Escape: () => (this.input.value ? this.clear() : this.act.leaveSearch()),
    }[event.key];
    if (!done) return;
    event.preventDefault();
    event.stopPropagation();
    done();
  }
}
