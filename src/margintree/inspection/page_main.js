// Connects the parts: the selected node, the selected row and the measure that colours the picture.

const get = (id) => document.getElementById(id);
const tree = new ClassTree(data.leaves),
  layout = new Layout(tree),
  facts = new Facts(tree, data),
  measures = measuresOf(facts);
const scheme = matchMedia("(prefers-color-scheme: dark)");
const scene = { selected: 0, hovered: -1, path: null, trueLeaf: -1, found: [], measure: measures[0] };
let picture,
  keyDepth = null;

function paintScene() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  scene.colours = Object.fromEntries(
    ["surface", "ink", "muted", "select", "path", "error", "hit", "empty", "block", "none", "strong"].map((name) => [
      name,
      colour(name),
    ]),
  );
  scene.shades = shadesOf(RAMPS[scheme.matches ? "dark" : "light"], {
    fill: scene.colours.none,
    ink: scene.colours.ink,
  });
  scene.shade = shadeNumbers(tree, scene.measure);
  scene.below = meanShades(tree, scene.shade);
  drawLegend();
  picture?.redraw();
}

function drawLegend() {
  const { measure } = scene,
    ticks = measure.ticks.filter((value) => Number.isFinite(measure.place(value)));
  const bar = element("div", { class: "ramp" });
  bar.style.background = `linear-gradient(to right, ${scene.shades
    .filter((_, k) => k < SHADES && k % 9 === 0)
    .map((shade) => shade.fill)
    .join(", ")})`;
  const marks = ticks.map((value) => {
    const mark = element("span", { textContent: measure.show(value) });
    const place = measure.place(value);
    mark.style.left = `${100 * place}%`;
    mark.style.transform = `translateX(-${100 * Math.min(1, Math.max(0, place))}%)`;
    return mark;
  });
  const scale = element("div", { class: "scale" }, bar, element("div", { class: "ticks" }, ...marks));
  const swatch = (kind, text) => element("span", { class: "swatch" }, element("i", { class: kind }), text);
  get("legend").replaceChildren(
    element("b", { textContent: measure.label }),
    scale,
    ...(picture?.mode === "matrix" ? [swatch("hit", "correct"), swatch("miss", "wrong")] : []),
  );
  get("keys").hidden = picture?.mode === "matrix";
}

const act = {
  // Select a node, announce it and, if wanted, bring it into view.
  select(i, reveal = false, tab = true) {
    if (i < 0) return;
    scene.selected = i;
    if (reveal) act.open(i);
    if (reveal) picture.reveal(i);
    panel.show(i, layout.collapsed[i] === 1);
    if (tab && get("tab-row").getAttribute("aria-selected") === "true") act.showTab("node");
    if (!get("outline").hidden) outline.choose(i);
    crumbs(i);
    get("said").textContent = facts.sentence(i);
    picture.canvas.dataset.selected = i;
    picture.redraw();
  },
  open(i) {
    if (layout.shown(i) === i) return;
    picture.refold(() => layout.open(i));
    act.rowChosen();
    get("levels").value = "";
  },
  zoomTo(i) {
    act.open(i);
    picture.zoomTo(i);
  },
  goTo(leaf) {
    // The path of a row would dim a class that is not on it.
    if (scene.path && !scene.path.has(leaf)) rows.choose(-1);
    act.select(leaf, true);
    act.zoomTo(leaf);
    picture.canvas.focus();
  },
  collapse(i) {
    if (tree.isLeaf(i)) return;
    const on = !layout.collapsed[i];
    picture.refold(() => layout.setCollapsed(i, on));
    panel.show(i, on);
    act.rowChosen();
    get("said").textContent = `${facts.title(i)} ${on ? "collapsed" : "expanded"}`;
    get("levels").value = "";
  },
  found(leaves) {
    scene.found = leaves;
    picture.redraw();
  },
  leaveSearch: () => picture.canvas.focus(),
  rowChosen() {
    scene.path = rows.path() && new Map(rows.path().map(([i, said]) => [layout.shown(i), said]));
    scene.trueLeaf = rows.trueLeaf();
    picture.redraw();
  },
  // Show the whole tree if the path to a leaf is outside of the view.
  seePath(leaf) {
    if (!picture.isSeen(layout.shown(leaf))) picture.showAll();
  },
  rowsOf: (k) => rows.ofClass(k),
  clicked({ node }) {
    if (node < 0) return;
    keyDepth = null;
    // A second click expands a collapsed node and zooms to any other.
    if (node !== scene.selected) act.select(node);
    else if (layout.collapsed[node]) act.collapse(node);
    else act.zoomTo(node);
  },
  hovered(target, at) {
    const node = target?.node ?? -1;
    if (node !== scene.hovered) ((scene.hovered = node), picture.redraw());
    showTip(target, at);
  },
  showTab(name) {
    for (const other of ["node", "row", "outline"]) {
      const on = other === name;
      get(other).hidden = !on;
      get(`tab-${other}`).setAttribute("aria-selected", String(on));
      get(`tab-${other}`).tabIndex = on ? 0 : -1;
    }
    if (name === "outline") outline.choose(scene.selected);
  },
};

function showTip(target, at) {
  const tip = get("tip"),
    node = target?.node ?? -1;
  tip.hidden = node < 0;
  if (node < 0) return;
  const line = (...parts) => element("div", {}, ...parts);
  if (target.cell) {
    const { truth, predicted, count: number, share } = target.cell,
      named = (i) => (tree.isLeaf(i) ? label(facts.name(i)) : facts.title(i));
    tip.replaceChildren(
      line(element("b", {}, named(truth))),
      truth === predicted ? line("predicted correctly") : line("predicted as ", element("b", {}, named(predicted))),
      line(`${plural(number, "row")}, ${percent(share)}`),
    );
  } else {
    const said = [
      ["Margin", facts.fact("margin", node), plain],
      [tree.isLeaf(node) ? "Recall" : "Accuracy", facts.accuracy(node), percent],
    ].filter(([, value]) => value !== null);
    tip.replaceChildren(
      line(element("b", {}, tree.isLeaf(node) ? label(facts.name(node)) : facts.title(node))),
      ...said.map(([name, value, show]) => line(`${name} ${show(value)}`)),
      ...(tree.isLeaf(node)
        ? []
        : [
            line(
              element(
                "span",
                { class: "muted" },
                ...tree.someLeaves(node, 4).flatMap((leaf, k) => [k ? ", " : "", label(facts.name(leaf))]),
                tree.size[node] > 4 ? " …" : "",
              ),
            ),
          ]),
    );
  }
  const room = get("picture").getBoundingClientRect(),
    box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(at.x + 14, room.width - box.width - 6))}px`;
  tip.style.top = `${at.y + 18 + box.height > room.height ? Math.max(2, at.y - box.height - 10) : at.y + 18}px`;
}

function crumbs(i) {
  const path = tree.ancestors(i),
    nav = get("crumbs");
  nav.replaceChildren(
    element(
      "ol",
      {},
      ...path.map((node, k) =>
        element(
          "li",
          {},
          element(
            "button",
            {
              title: facts.title(node),
              ...(node === i ? { "aria-current": "true" } : {}),
              onclick: () => {
                act.select(node, true);
                act.zoomTo(node);
              },
            },
            tree.isLeaf(node) ? label(facts.name(node)) : k ? count(tree.size[node]) : `All ${facts.title(node)}`,
          ),
        ),
      ),
    ),
  );
  nav.scrollLeft = nav.scrollWidth;
}

// The next node at the same depth, or the leaf above it that ends there.
function beside(i, by) {
  keyDepth ??= tree.depth[i];
  const next = layout.at(by > 0 ? layout.finalBottom[i] + 1e-6 : layout.finalTop[i] - 1e-6, keyDepth);
  return next < 0 ? i : next;
}

function keyed(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const i = layout.shown(scene.selected),
    go = (next) => act.select(next, true);
  const done = {
    ArrowDown: () => go(beside(i, 1)),
    ArrowUp: () => go(beside(i, -1)),
    ArrowRight: () => {
      keyDepth = null;
      go(layout.isEnd(i) ? i : i + 1);
    },
    ArrowLeft: () => {
      keyDepth = null;
      go(Math.max(0, tree.parent[i]));
    },
    Home: () => go(0),
    Enter: () => (layout.collapsed[i] ? act.collapse(i) : act.zoomTo(i)),
    " ": () => act.collapse(i),
    "+": () => picture.zoomBy(0.6),
    "=": () => picture.zoomBy(0.6),
    "-": () => picture.zoomBy(1 / 0.6),
  }[event.key];
  if (!done) return;
  event.preventDefault();
  done();
}

function keyedAnywhere(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    get("search").focus();
    get("search").select();
  } else if (event.key === "Escape" && !isTyping) {
    if (!picture.isWhole()) picture.showAll();
    else if (scene.path) rows.choose(-1);
    else if (scene.found.length) search.clear();
  }
}

function choosing(group, chosen) {
  // Arrow keys move within tabs and radio buttons.
  const buttons = [...group.querySelectorAll("button")];
  buttons.forEach((button, k) => {
    button.addEventListener("click", () => chosen(button.id));
    button.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const next = buttons[(k + by + buttons.length) % buttons.length];
      if (next.disabled) return;
      next.focus();
      next.click();
    });
  });
}

function showMode(mode) {
  picture.mode = mode;
  for (const [id, on] of [
    ["show-tree", mode === "tree"],
    ["show-matrix", mode === "matrix"],
  ]) {
    get(id).setAttribute("aria-checked", String(on));
    get(id).tabIndex = on ? 0 : -1;
  }
  picture.canvas.setAttribute(
    "aria-label",
    mode === "tree" ? "Icicle of the class tree" : "Confusion matrix in the order of the tree",
  );
  paintScene();
}

function introduce() {
  const said = [
    plural(tree.size[0], "class", "classes"),
    `depth ${tree.maxDepth}`,
    ...data.facts.map(([name, value]) => `${name} ${value}`),
  ];
  if (facts.confusion)
    said.unshift(
      `accuracy ${percent(facts.confusion.right / facts.confusion.rows)} on ${plural(facts.confusion.rows, "row")}`,
    );
  get("facts").replaceChildren(...said.map((text) => element("span", { textContent: text })));
  get("measure").append(...measures.map((one) => element("option", { value: one.name, textContent: one.label })));
  const depths = [2, 3, 4, 5, 6, 8, 10, 12].filter((depth) => depth < tree.maxDepth);
  get("levels").append(
    element("option", { value: "Infinity", textContent: "all" }),
    element("option", { value: "", textContent: "some", hidden: true }),
    ...depths.map((depth) => element("option", { value: String(depth), textContent: String(depth) })),
  );
  get("show-matrix").disabled = !facts.confusion;
  if (!facts.confusion) get("show-matrix").title = "The page was written without labelled rows.";
}

paintScene();
picture = new Picture(get("canvas"), layout, facts, scene, act);
performance.mark("drawn");
const panel = new Panel(get("node"), tree, facts, act),
  rows = new Rows(get("row"), tree, facts, data.rows, act);
const outline = new Outline(get("outline"), tree, facts, act),
  search = new Search(get("search"), get("hits"), tree, facts, act);
introduce();
scheme.addEventListener("change", paintScene);
get("measure").addEventListener("change", (event) => {
  scene.measure = measures.find((one) => one.name === event.target.value);
  paintScene();
});
get("levels").addEventListener("change", (event) => {
  picture.refold(() => layout.cutAt(Number(event.target.value)));
  picture.showAll();
  act.select(layout.shown(scene.selected));
  act.rowChosen();
});
get("canvas").addEventListener("keydown", keyed);
document.addEventListener("keydown", keyedAnywhere);
get("zoom-in").addEventListener("click", () => picture.zoomBy(0.5));
get("zoom-out").addEventListener("click", () => picture.zoomBy(2));
get("zoom-all").addEventListener("click", () => picture.showAll());
choosing(document.querySelector(".tabs"), (id) => act.showTab(id.slice(4)));
choosing(document.querySelector(".switch"), (id) => showMode(id.slice(5)));
act.select(0);
get("said").textContent = "";
