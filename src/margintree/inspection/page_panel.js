// The panel beside the picture: the facts about the selected node.
// Labels are inserted as text only.

const LISTED = 14; // Classes of each side that are listed; the others are counted.

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name in made && !name.startsWith("aria")) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const label = (text) => element("bdi", { textContent: text, title: text });

const fraction = (share, kind = "") => {
  const full = element("span", { class: `fill ${kind}` });
  full.style.width = `${100 * share}%`;
  return element("span", { class: "fraction" }, full);
};

class Panel {
  constructor(home, tree, facts, act) {
    Object.assign(this, { home, tree, facts, act });
  }

  nodeButton(i, text = null) {
    const inside = text ?? (this.tree.isLeaf(i) ? label(this.facts.name(i)) : this.facts.title(i));
    return element(
      "button",
      { class: this.tree.isLeaf(i) ? "link leaf" : "link", onclick: () => this.act.select(i, true) },
      inside,
    );
  }

  show(i, isCollapsed) {
    const { tree, facts } = this,
      isLeaf = tree.isLeaf(i);
    const head = element("h2", {}, isLeaf ? label(facts.name(i)) : facts.title(i));
    const where = isLeaf ? `Class at depth ${tree.depth[i]}` : `Node ${i} at depth ${tree.depth[i]}`;
    const actions = element(
      "div",
      { class: "actions" },
      element("button", { textContent: "Zoom here", onclick: () => this.act.zoomTo(i) }),
      isLeaf
        ? null
        : element("button", {
            id: "collapse",
            textContent: isCollapsed ? "Expand" : "Collapse",
            onclick: () => this.act.collapse(i),
          }),
      i ? element("button", { textContent: "Parent", onclick: () => this.act.select(tree.parent[i], true) }) : null,
    );
    this.home.replaceChildren(
      head,
      element("p", { class: "muted", textContent: where }),
      actions,
      ...(isLeaf ? this.ofClass(i) : [this.numbers(i), this.accuracy(i), this.features(i), this.sides(i)]).filter(
        Boolean,
      ),
    );
  }

  numbers(i) {
    const { facts } = this,
      bound = facts.fact("bound", i),
      objective = facts.fact("objective", i);
    if (objective === null) return null;
    const rows = [
      ["Margin", "2 / |w|²", plain(facts.fact("margin", i)), ""],
      ["Objective", "of this split, smaller is better", plain(objective), ""],
      [
        "Lower bound",
        "on every split of these classes",
        plain(bound),
        bound === null ? "" : `${percent(Math.max(0, bound / objective))} of the objective`,
      ],
      ["Training rows", "", count(facts.fact("n_rows", i)), `sides differ by ${percent(facts.fact("imbalance", i))}`],
    ];
    return element(
      "dl",
      { class: "numbers" },
      ...rows.map(([name, what, value, more]) =>
        element(
          "div",
          {},
          element("dt", { textContent: name, title: what }),
          element(
            "dd",
            {},
            element("b", { textContent: value }),
            more ? element("small", { textContent: more }) : null,
          ),
        ),
      ),
    );
  }

  accuracy(i) {
    const sides = this.facts.sidesOf(i),
      { confusion } = this.facts;
    if (!sides) return null;
    const [ll, lr, rl, rr] = sides,
      all = ll + lr + rl + rr,
      share = this.facts.accuracy(i);
    if (!all)
      return element(
        "section",
        {},
        element("h3", { textContent: "Accuracy" }),
        element("p", { class: "muted", textContent: "No row of these classes was given." }),
      );
    const cell = (number, of, isRight) => {
      const made = element("td", { class: isRight ? "hit" : "miss" }, element("b", { textContent: count(number) }));
      made.style.setProperty("--share", of ? number / of : 0);
      return made;
    };
    const table = element(
      "table",
      { class: "sides" },
      element("caption", {
        textContent: "Rows of these classes: their true side in rows, the side chosen by the node in columns",
      }),
      element(
        "tr",
        {},
        element("td"),
        element("th", { scope: "col", textContent: "sent left" }),
        element("th", { scope: "col", textContent: "sent right" }),
      ),
      element(
        "tr",
        {},
        element("th", { scope: "row", textContent: "left" }),
        cell(ll, ll + lr, true),
        cell(lr, ll + lr, false),
      ),
      element(
        "tr",
        {},
        element("th", { scope: "row", textContent: "right" }),
        cell(rl, rl + rr, false),
        cell(rr, rl + rr, true),
      ),
    );
    const lost = confusion.lost[i],
      wrong = confusion.rows - confusion.right;
    return element(
      "section",
      {},
      element("h3", { textContent: "Accuracy" }),
      element(
        "p",
        { class: "large" },
        element("b", { textContent: percent(share) }),
        ` of ${plural(all, "row")} go to the correct side`,
      ),
      table,
      element("p", {
        class: "muted",
        textContent:
          `${plural(lost, "prediction")} leave${lost === 1 ? "s" : ""} the path to the true class here: ` +
          `${wrong ? percent(lost / wrong) : "0 %"} of all errors.`,
      }),
    );
  }

  features(i) {
    const { features } = this.facts;
    if (!features) return null;
    const k = this.tree.internal[i],
      sides = [features.left[k], features.right[k]];
    const largest = Math.max(...sides.map((side) => side[1] || 0)) || 1;
    const list = (side, kind) =>
      element(
        "ol",
        { class: "features", "aria-label": `Features for the ${kind} side` },
        ...Array.from({ length: side.length / 2 }, (_, j) =>
          element(
            "li",
            {},
            label(features.names[side[2 * j]]),
            fraction(side[2 * j + 1] / largest, kind),
            element("small", { textContent: plain(side[2 * j + 1]) }),
          ),
        ),
      );
    return element(
      "section",
      {},
      element("h3", { textContent: "Largest weights" }),
      element(
        "div",
        { class: "two" },
        element("div", {}, element("h4", { class: "left", textContent: "Left" }), list(sides[0], "left")),
        element("div", {}, element("h4", { class: "right", textContent: "Right" }), list(sides[1], "right")),
      ),
    );
  }

  sides(i) {
    const { tree } = this,
      children = [i + 1, tree.right[i]];
    return element(
      "section",
      {},
      element("h3", { textContent: "The two sides" }),
      element(
        "div",
        { class: "two" },
        ...children.map((child, k) =>
          element(
            "div",
            {},
            element(
              "h4",
              { class: k ? "right" : "left" },
              this.nodeButton(child, `${k ? "Right" : "Left"}: ${plural(tree.size[child], "class", "classes")}`),
            ),
            this.classList(child),
          ),
        ),
      ),
    );
  }

  classList(i) {
    const listed = this.tree.someLeaves(i, LISTED),
      more = this.tree.size[i] - listed.length;
    return element(
      "ul",
      { class: "classes" },
      ...listed.map((leaf) => element("li", {}, this.nodeButton(leaf))),
      more > 0 ? element("li", { class: "muted", textContent: `and ${count(more)} more` }) : null,
    );
  }

  ofClass(i) {
    const { tree, facts } = this,
      k = tree.leafClass[i],
      parts = [];
    if (facts.confusion) {
      const { ofClass, asClass, hit, entries } = facts.confusion;
      const figure = (name, part, whole) =>
        element(
          "div",
          {},
          element("dt", { textContent: name }),
          element(
            "dd",
            {},
            element("b", { textContent: whole ? percent(part / whole) : "–" }),
            element("small", { textContent: `${count(part)} of ${plural(whole, "row")}` }),
          ),
        );
      parts.push(
        element(
          "dl",
          { class: "numbers" },
          figure("Recall", hit[k], ofClass[k]),
          figure("Precision", hit[k], asClass[k]),
        ),
      );
      const confused = (title, from, to) => {
        const found = entries
          .filter((entry) => entry[from] === k && entry[to] !== k)
          .sort((a, b) => b[2] - a[2])
          .slice(0, 8);
        return found.length
          ? element(
              "section",
              {},
              element("h3", { textContent: title }),
              element(
                "ol",
                { class: "features" },
                ...found.map((entry) =>
                  element(
                    "li",
                    {},
                    this.nodeButton(tree.leafOfClass[entry[to]]),
                    fraction(entry[2] / found[0][2], "error"),
                    element("small", { textContent: count(entry[2]) }),
                  ),
                ),
              ),
            )
          : null;
      };
      parts.push(confused("Predicted instead", 0, 1), confused("Misclassified as this class", 1, 0));
    }
    const path = tree.ancestors(i).slice(0, -1);
    parts.push(
      this.act.rowsOf(k),
      element(
        "section",
        {},
        element("h3", { textContent: "Path from the root" }),
        element(
          "ol",
          { class: "way" },
          ...path.map((node, d) =>
            element(
              "li",
              {},
              this.nodeButton(node),
              " ",
              element("span", {
                class: "muted",
                textContent: (path[d + 1] ?? i) === node + 1 ? "goes left" : "goes right",
              }),
            ),
          ),
        ),
      ),
    );
    return parts;
  }
}
