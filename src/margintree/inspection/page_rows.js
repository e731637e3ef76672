// The path of one row: what was decided at each node, with which probability, and the most probable classes.

class Rows {
  constructor(home, tree, facts, rows, act) {
    Object.assign(this, { home, tree, facts, rows, act, chosen: -1, filter: "all" });
    if (rows) {
      this.start = [0];
      for (const k of rows.predicted) this.start.push(this.start.at(-1) + tree.depth[tree.leafOfClass[k]]);
    }
    this.show();
  }

  isWrong(r) {
    return this.rows.true !== null && this.rows.true[r] !== this.rows.predicted[r];
  }

  passes(r) {
    return this.filter === "all" || this.isWrong(r) === (this.filter === "wrong");
  }

  choose(r) {
    this.chosen = r;
    this.act.rowChosen();
    if (r >= 0) this.act.seePath(this.tree.leafOfClass[this.rows.predicted[r]]);
    this.show();
  }

  step(by) {
    const n = this.rows.number.length;
    let r = this.chosen;
    for (let tried = 0; tried < n; tried++) {
      r = r < 0 && by < 0 ? n - 1 : (r + by + n) % n;
      if (this.passes(r)) return this.choose(r);
    }
  }

  // The row with the nearest number, because a page contains only some rows.
  chooseNumber(number) {
    const { number: numbers } = this.rows;
    let best = -1;
    for (let r = 0; r < numbers.length; r++)
      if (this.passes(r) && (best < 0 || Math.abs(numbers[r] - number) < Math.abs(numbers[best] - number))) best = r;
    if (best >= 0) this.choose(best);
  }

  // Nodes on the path of the chosen row, its leaf included, each with the probability of the step to it as text.
  path() {
    if (this.chosen < 0) return null;
    const { tree, rows } = this,
      path = tree.ancestors(tree.leafOfClass[rows.predicted[this.chosen]]);
    return path.map((i, d) => [i, d && rows.left ? `p = ${percent(this.taken(this.chosen, path, d - 1))}` : null]);
  }

  // The probability of the side that a row takes at the node of a depth on its path.
  taken(r, path, d) {
    const left = this.rows.left[this.start[r] + d];
    return path[d + 1] === path[d] + 1 ? left : 1 - left;
  }

  trueLeaf() {
    return this.chosen >= 0 && this.isWrong(this.chosen) ? this.tree.leafOfClass[this.rows.true[this.chosen]] : -1;
  }

  show() {
    const { rows, home } = this;
    if (!rows) {
      home.replaceChildren(
        element("p", {
          class: "muted",
          textContent:
            "This page was written without rows. Give X to export_html, or --rows to margintree show, to see the paths of single rows.",
        }),
      );
      return;
    }
    const held = rows.number.length,
      part =
        held < rows.total
          ? `This page contains ${count(held)} of ${plural(rows.total, "row")}.`
          : `This page contains all ${plural(held, "row")}.`;
    const input = element("input", {
      id: "row-number",
      type: "number",
      min: 0,
      max: rows.total - 1,
      "aria-label": "Number of the row",
      onchange: (event) => this.chooseNumber(Number(event.target.value)),
    });
    if (this.chosen >= 0) input.value = rows.number[this.chosen];
    const filter = element(
      "select",
      {
        id: "row-filter",
        "aria-label": "Which rows",
        onchange: (event) => {
          this.filter = event.target.value;
          this.step(1);
          document.getElementById("row-filter").focus();
        },
      },
      ...[
        ["all", "all rows"],
        ["wrong", "misclassified"],
        ["right", "correct"],
      ].map(([value, text]) => element("option", { value, textContent: text, selected: value === this.filter })),
    );
    const button = (id, text, name, by) =>
      element("button", {
        id,
        textContent: text,
        "aria-label": name,
        onclick: () => {
          this.step(by);
          document.getElementById(id).focus();
        },
      });
    home.replaceChildren(
      element(
        "div",
        { class: "chooser" },
        button("row-before", "‹", "Previous row", -1),
        input,
        button("row-after", "›", "Next row", 1),
        rows.true ? filter : null,
      ),
      element("h2", { textContent: this.chosen < 0 ? "No row chosen" : `Row ${count(rows.number[this.chosen])}` }),
      element("p", { class: "muted", textContent: part }),
      ...(this.chosen < 0
        ? [element("p", { textContent: "Go through the rows with the arrows, or type the number of a row." })]
        : this.details(this.chosen)),
    );
  }

  details(r) {
    const { rows, tree, facts, act } = this,
      leaf = tree.leafOfClass[rows.predicted[r]],
      truth = rows.true ? tree.leafOfClass[rows.true[r]] : -1;
    const link = (i) =>
      element("button", { class: "link leaf", onclick: () => act.select(i, true) }, label(facts.name(i)));
    const said = element(
      "dl",
      { class: "answer" },
      element("div", {}, element("dt", { textContent: "Predicted" }), element("dd", {}, link(leaf))),
      truth < 0
        ? null
        : element(
            "div",
            { class: this.isWrong(r) ? "wrong" : "right" },
            element("dt", { textContent: "True class" }),
            element(
              "dd",
              {},
              link(truth),
              element("small", { textContent: this.isWrong(r) ? "✗ misclassified" : "✓ correct" }),
            ),
          ),
    );
    const actions = element(
      "div",
      { class: "actions" },
      element("button", { textContent: "Zoom to path", onclick: () => act.zoomTo(leaf) }),
      element("button", { textContent: "Clear", onclick: () => this.choose(-1) }),
    );
    return [said, actions, this.finalists(r), this.steps(r, leaf, truth)].filter(Boolean);
  }

  finalists(r) {
    const { ranked } = this.rows;
    if (!ranked) return null;
    const items = Array.from({ length: ranked.k }, (_, j) => [
      ranked.class[r * ranked.k + j],
      ranked.probability[r * ranked.k + j],
    ]);
    return element(
      "section",
      {},
      element("h3", { textContent: "Most probable classes" }),
      element(
        "ol",
        { class: "features" },
        ...items.map(([k, probability]) =>
          element(
            "li",
            { class: this.rows.true && k === this.rows.true[r] ? "own" : "" },
            element(
              "button",
              { class: "link leaf", onclick: () => this.act.select(this.tree.leafOfClass[k], true) },
              label(this.facts.names[k]),
            ),
            fraction(probability, "left"),
            element("small", { textContent: percent(probability) }),
          ),
        ),
      ),
    );
  }

  steps(r, leaf, truth) {
    const { tree, facts, rows, act } = this,
      path = tree.ancestors(leaf),
      parts = truth < 0 || truth === leaf ? -1 : tree.meeting(leaf, truth);
    let together = 1;
    const steps = path.slice(0, -1).map((node, d) => {
      const next = path[d + 1],
        other = next === node + 1 ? tree.right[node] : node + 1,
        at = this.start[r] + d,
        value = rows.value[at];
      const probability = rows.left ? this.taken(r, path, d) : null;
      if (probability !== null) together *= probability;
      const given = tree.someLeaves(other, 3).map((i) => facts.name(i)),
        more = tree.size[other] - given.length;
      const ruledOut = element(
        "p",
        { class: "muted" },
        `ruled out ${plural(tree.size[other], "class", "classes")}: `,
        ...given.flatMap((name, k) => [k ? ", " : "", label(name)]),
        more > 0 ? " …" : "",
      );
      return element(
        "li",
        { class: node === parts ? "parted" : "" },
        element(
          "div",
          {},
          element("button", {
            class: "link",
            textContent: `${next === node + 1 ? "Left" : "Right"} of ${plural(tree.size[node], "class", "classes")}`,
            onclick: () => act.select(node, true),
          }),
          element("small", { textContent: `f = ${plain(value)}`, title: "Decision value: positive means left" }),
        ),
        probability === null
          ? null
          : element(
              "div",
              { class: "probability" },
              fraction(probability, next === node + 1 ? "left" : "right"),
              element("small", { textContent: percent(probability) }),
            ),
        ruledOut,
        node === parts
          ? element("p", { class: "error", textContent: "Here the path leaves that of the true class." })
          : null,
      );
    });
    const sum = rows.left
      ? `The path has probability ${percent(together)}.`
      : "The nodes of this model are not calibrated, so there are no probabilities.";
    return element(
      "section",
      {},
      element("h3", { textContent: "Path from the root" }),
      element("ol", { class: "steps" }, ...steps),
      element("p", { class: "muted", textContent: sum }),
    );
  }

  // Rows of a class as buttons, for the panel of that class.
  ofClass(k) {
    if (!this.rows || !this.rows.true) return null;
    const found = this.rows.number
      .map((_, r) => r)
      .filter((r) => this.rows.true[r] === k)
      .slice(0, 24);
    return found.length
      ? element(
          "section",
          {},
          element("h3", { textContent: "Rows of this class" }),
          element(
            "div",
            { class: "chips" },
            ...found.map((r) =>
              element("button", {
                class: this.isWrong(r) ? "chip wrong" : "chip",
                textContent: count(this.rows.number[r]),
                "aria-label": `Row ${this.rows.number[r]}, ${this.isWrong(r) ? "misclassified" : "correct"}`,
                onclick: () => {
                  this.choose(r);
                  this.act.showTab("row");
                },
              }),
            ),
          ),
        )
      : null;
  }
}
