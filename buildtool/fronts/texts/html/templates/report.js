// The interaction of a report's page: tips, the steps of streamed regions, the front's points.
// The page can be read without it. It reads the data inside the page and fetches nothing. Names of a network
// are always text, never markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("buildtool-report").textContent);
  const page = document.documentElement;
  page.classList.add("js-on");
  const find = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const count = (n) => n.toLocaleString("en-US");

  // ---- new elements -------------------------------------------------------------------------------

  const SVG = "http://www.w3.org/2000/svg";
  function make(name, attributes = {}, inside = null, text = "") {
    const element = /^(svg|g|rect|line|path|text|title|desc)$/.test(name)
      ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    if (inside) inside.append(element);
    return element;
  }

  // ---- tips ------------------------------------------------------------------------------------------

  const tip = document.getElementById("tip");
  function place(x, y) {
    const box = tip.getBoundingClientRect();
    const left = Math.min(x + 14, page.clientWidth - box.width - 8);
    const top = y + 18 + box.height > page.clientHeight ? y - box.height - 12 : y + 18;
    tip.style.left = Math.max(6, left) + window.scrollX + "px";
    tip.style.top = Math.max(6, top) + window.scrollY + "px";
  }
  function showTip(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    place(x, y);
  }
  let focused = null;  // the element whose tip is shown because it has the focus; the tip moves with it
  function hideTip() { tip.hidden = true; focused = null; }
  function follow() {
    if (!focused) return hideTip();
    const box = focused.getBoundingClientRect();
    place(box.left + Math.min(box.width, 40) / 2, box.bottom - 12);
  }
  function addTip(element, text) {
    find(":scope > title", element).forEach((title) => title.remove());  // otherwise there would be two tips
    element.setAttribute("aria-label", text.replaceAll("\n", ", "));
    element.addEventListener("pointermove", (event) => {
      if (focused && !event.movementX && !event.movementY) return;  // the page moved, not the pointer
      focused = null;
      showTip(text, event.clientX, event.clientY);
    });
    element.addEventListener("pointerleave", () => { if (!focused) hideTip(); });
    element.addEventListener("focus", () => {
      if (!element.matches(":focus-visible")) return;  // the pointer shows its own tip
      showTip(text, 0, 0);
      focused = element;
      follow();
    });
    element.addEventListener("blur", hideTip);
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  window.addEventListener("scroll", follow, { passive: true, capture: true });

  // A picture is one stop of the tab key. Arrow keys move between its parts.
  function moveByArrows(parts, role) {
    parts.forEach((part, index) => {
      part.setAttribute("tabindex", index ? "-1" : "0");
      part.setAttribute("role", role);
      part.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        const to = event.key === "Home" ? 0 : event.key === "End" ? parts.length - 1 : index + step;
        if (!(to >= 0 && to < parts.length)) return;
        event.preventDefault();
        part.setAttribute("tabindex", "-1");
        parts[to].setAttribute("tabindex", "0");
        parts[to].focus();
      });
    });
  }
  const press = (element, act) => {
    element.addEventListener("click", act);
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act(event);
    });
  };

  // The data has the file's names, the table of layers the short ones.
  const layerName = (position) => document.querySelector(`#layer-${position} th`).textContent;
  const positions = new Map(data.operators.map((op) => [op.name, op.position]));
  const tensorName = (name) => positions.has(name) ? layerName(positions.get(name)) : name.split(";")[0].slice(0, 60);

  // ---- the arena ---------------------------------------------------------------------------------------

  const picture = document.getElementById("picture");
  const boxes = find(".box", picture);
  for (const box of boxes) addTip(box, box.querySelector("title").textContent);
  const first = (box) => data.buffers[box.dataset.buffer].first;
  moveByArrows([...boxes].sort((a, b) => first(a) - first(b)), "img");
  picture.setAttribute("role", "group");
  const kinds = new Map(boxes.map((box) => [Number(box.dataset.buffer), box.querySelector("rect").getAttribute("class")]));
  const tips = new Map(boxes.map((box) => [Number(box.dataset.buffer), box.getAttribute("aria-label")]));

  const bands = find(".band.streamed", picture);
  for (const band of bands) {
    addTip(band, band.dataset.tip + "\nEnter or a click opens its steps");
    band.setAttribute("tabindex", "0");
    band.setAttribute("role", "button");
    band.setAttribute("aria-expanded", "false");
    press(band, () => toggle(Number(band.dataset.region)));
  }

  // Unpacks the steps of a region: see RegionSteps in the data's description.
  function unpackSteps(entry) {
    const numbers = [];
    for (let i = 0; i < entry.sequence.length; i++) {
      const token = entry.sequence[i];
      if (token >= 0) numbers.push(token);
      else for (let n = entry.sequence[++i]; n > 0; n--) numbers.push(numbers[numbers.length + token]);
    }
    const before = new Map();
    return numbers.map((number) => {
      const [op, down, rows, right, columns] = entry.symbols[number];
      const [y, x] = before.get(op) || [0, 0];
      before.set(op, [y + down, x + right]);
      return { op, y: y + down, rows, x: x + right, columns };
    });
  }

  const panel = document.getElementById("steps");
  let opened = -1;
  function toggle(region) {
    opened = opened === region ? -1 : region;
    for (const band of bands) {
      const is = Number(band.dataset.region) === opened;
      band.classList.toggle("open", is);
      band.setAttribute("aria-expanded", String(is));
    }
    panel.replaceChildren();
    panel.hidden = opened < 0;
    hideTip();
    if (opened < 0) return;
    drawSteps(data.steps.find((entry) => entry.region === opened));
    panel.scrollIntoView({ block: "nearest" });
  }

  const WIDTH = 1100, LEFT = 150, TOP = 10, PLOT = 260, LANE = 13, NEAREST = 24;

  function drawSteps(entry) {
    const region = data.regions[entry.region], begin = region.first_step;
    const steps = unpackSteps(entry), name = (op) => op < 0 ? "a row of the input image" : layerName(op);
    const turns = new Map(Object.entries(entry.turns).map(([op, held]) => [Number(op), new Set(held)]));
    const turning = new Set([...turns.values()].flatMap((held) => [...held]));
    const uses = new Map(region.buffers.map((held) => [held.buffer, held.use]));
    const lasting = region.buffers.map((held) => held.buffer)
      .filter((b) => !turning.has(b) && !["windows", "scratch"].includes(uses.get(b)));
    const ops = [...new Set(steps.map((step) => step.op))].sort((a, b) => a - b);
    const fullest = region.fullest.step - begin;
    let from = 0, to = steps.length, at = fullest;

    make("h3", {}, panel, `Region ${entry.region}, step by step: ${count(steps.length)} steps`);
    const tools = make("div", { class: "tools" }, panel);
    const button = (text, act) => make("button", { type: "button" }, tools, text).addEventListener("click", act);
    button("Whole region", () => zoom(0, steps.length));
    button("Closer", () => zoom(at - (to - from) / 4, at + (to - from) / 4));
    button("Wider", () => zoom(at - (to - from), at + (to - from)));
    button("Fullest step", () => { at = fullest; zoom(at - 30, at + 31); });
    const label = make("label", {}, tools, "Step");
    const slider = make("input", { type: "range", min: 0, max: steps.length - 1, step: 1, value: at }, label);
    slider.addEventListener("input", () => show(Number(slider.value), true));
    const frame = make("div", { class: "scroll" }, panel);
    const height = TOP + PLOT + 22 + ops.length * LANE + 8;
    const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `Steps of region ${entry.region}` }, frame);
    const drawing = make("g", {}, svg);
    const cursor = make("line", { class: "cursor", y1: TOP, y2: height - 6 }, svg);
    const summary = make("p", { class: "said", "aria-live": "polite" }, panel);
    const list = make("p", { class: "said aside" }, panel);

    const x = (step) => LEFT + (step - from) / (to - from) * (WIDTH - LEFT - 8);
    const y = (byte) => TOP + PLOT * (1 - byte / data.arena_bytes);

    function live(step) {
      const now = turns.get(steps[step].op) || new Set(), number = begin + step;
      return [...lasting.filter((b) => data.buffers[b].first <= number && number <= data.buffers[b].last), ...now];
    }
    const owner = (b) => b.tensor_names.length ? tensorName(b.tensor_names[0]) : b.op >= 0 ? `${b.kind} of ${layerName(b.op)}` : b.name;
    function coveredBytes(held) {
      let total = 0, reached = 0;
      const spans = held.map((b) => data.buffers[b]).map(({ offset, size }) =>
        [offset, offset + Math.ceil(size / data.alignment) * data.alignment]);
      for (const [start, end] of spans.sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
        total += Math.max(0, end - Math.max(start, reached));
        reached = Math.max(reached, end);
      }
      return total;
    }

    // Runs of steps in which a condition holds; runs closer than half a unit of the picture are joined.
    function runs(isTrue) {
      const joined = [], least = (to - from) / (WIDTH - LEFT) / 2;
      for (let step = Math.floor(from); step < Math.min(to, steps.length); step++) {
        if (!isTrue(step)) continue;
        const last = joined[joined.length - 1];
        if (last && step - last[1] <= least) last[1] = step + 1;
        else joined.push([step, step + 1]);
      }
      return joined;
    }
    function path(spans, top, bottom) {
      return spans.map(([a, b]) => {
        const left = Math.max(x(a), LEFT), right = Math.max(x(b), left + 0.6);
        return `M${left.toFixed(1)} ${top.toFixed(1)}H${right.toFixed(1)}V${bottom.toFixed(1)}H${left.toFixed(1)}z`;
      }).join("");
    }
    function draw() {
      drawing.replaceChildren();
      for (let i = 0; i <= 4; i++) {
        const byte = data.arena_bytes * i / 4;
        make("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y(byte), y2: y(byte) }, drawing);
        make("text", { class: "axis end", x: LEFT - 8, y: y(byte) + 4 }, drawing, `${count(Math.round(byte))} bytes`);
      }
      for (const held of region.buffers) {
        const b = data.buffers[held.buffer];
        const is = turning.has(held.buffer)
          ? (step) => (turns.get(steps[step].op) || new Set()).has(held.buffer)
          : (step) => b.first <= begin + step && begin + step <= b.last;
        const spans = runs(is);
        if (!spans.length) continue;
        const shape = make("path", { class: kinds.get(held.buffer) || "k-rest", d: path(spans, y(b.offset + b.size), y(b.offset)), "fill-opacity": 0.85, stroke: "var(--card)", "stroke-width": spans.length > 200 ? 0 : 0.5 }, drawing);
        const text = tips.get(held.buffer) || b.name;
        shape.addEventListener("pointermove", (event) => showTip(text.replaceAll(", steps", "\nsteps"), event.clientX, event.clientY));
        shape.addEventListener("pointerleave", hideTip);
      }
      ops.forEach((op, lane) => {
        const top = TOP + PLOT + 20 + lane * LANE;
        const full = name(op), shown = full.length > 24 ? "…" + full.slice(-23) : full;
        make("text", { class: "axis end", x: LEFT - 8, y: top + 9 }, drawing, shown);
        make("path", { class: "lane", "data-op": op, d: path(runs((step) => steps[step].op === op), top, top + LANE - 3) }, drawing);
      });
      const mark = x(fullest + 0.5), below = TOP + PLOT + 13;
      const isFree = (place) => fullest < from || fullest >= to || Math.abs(place - mark) > 120;
      if (isFree(LEFT)) make("text", { class: "axis", x: LEFT, y: below }, drawing, `step ${count(begin + from)}`);
      if (isFree(WIDTH - 8)) make("text", { class: "axis end", x: WIDTH - 8, y: below }, drawing, `step ${count(begin + to - 1)}`);
      if (fullest >= from && fullest < to) {
        make("path", { d: `M${mark} ${TOP + PLOT + 3}l-5 8h10z`, class: "lane now" }, drawing);
        make("text", { class: mark > WIDTH / 2 ? "axis end" : "axis", x: mark + (mark > WIDTH / 2 ? -9 : 9), y: below }, drawing, "fullest");
      }
    }
    function zoom(a, b) {
      const width = Math.max(Math.min(b - a, steps.length), Math.min(NEAREST, steps.length));
      const middle = (a + b) / 2;
      from = Math.round(Math.max(0, Math.min(middle - width / 2, steps.length - width)));
      to = Math.round(from + width);
      draw();
      show(Math.max(from, Math.min(at, to - 1)), false);
    }
    function show(step, follow) {
      at = step;
      if (follow && (at < from || at >= to)) zoom(at - (to - from) / 2, at + (to - from) / 2);
      slider.value = at;
      const { op, y: row, rows, x: column, columns } = steps[at];
      const held = live(at), place = x(at + 0.5);
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      find(".lane[data-op]", drawing).forEach((lane) => lane.classList.toggle("now", Number(lane.dataset.op) === op));
      const where = `${rows > 1 ? `rows ${row} to ${row + rows - 1}` : `row ${row}`}, columns ${column} to ${column + columns - 1}`;
      summary.textContent = `Step ${count(begin + at)}: ${name(op)}, ${where}: ${count(coveredBytes(held))} bytes live in ${held.length} buffers` + (at === fullest ? ", the fullest of the region" : "");
      list.textContent = held.map((b) => data.buffers[b]).sort((a, b) => b.size - a.size)
        .map((b) => `${owner(b)} ${count(b.size)} bytes`).join(" · ");
      slider.setAttribute("aria-valuetext", summary.textContent);
    }
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const step = Math.floor(from + ((event.clientX - box.left) / box.width * WIDTH - LEFT) / (WIDTH - LEFT - 8) * (to - from));
      if (step >= from && step < to) show(step, false);
    });
    draw();
    show(at, false);
  }

  // ---- the front ---------------------------------------------------------------------------------------

  const marks = find(".mark");
  const plans = find(".plan");
  const shown = () => marks.forEach((mark) => {
    const plan = document.getElementById("point-" + mark.dataset.point);
    mark.classList.toggle("shown", Boolean(plan && plan.open));
  });
  for (const mark of marks) {
    addTip(mark, mark.dataset.tip);
    if (!mark.dataset.point) continue;
    press(mark, (event) => {
      event.preventDefault();
      const plan = document.getElementById("point-" + mark.dataset.point);
      for (const other of plans) other.open = other === plan;
      hideTip();
      plan.scrollIntoView({ block: "nearest" });
    });
  }
  for (const plan of plans) plan.addEventListener("toggle", shown);
  shown();

  // ---- the network ---------------------------------------------------------------------------------------

  const graph = document.getElementById("graph");
  const nodes = find(".node[data-tip]", graph);
  for (const node of nodes) addTip(node, node.dataset.tip);
  moveByArrows(nodes, "img");
  graph.setAttribute("role", "group");
})();
