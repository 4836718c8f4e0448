"""The script of the page: it unpacks and draws the heat map. It asks for nothing, and writes names as text only."""

SCRIPT = """\
'use strict';
(async () => {
  const at = id => document.getElementById(id);
  const data = JSON.parse(at('heat-data').textContent);
  if (typeof DecompressionStream === 'undefined') { at('too-old').hidden = false; return; }

  const unpacked = async text => {
    const bytes = Uint8Array.from(atob(text), each => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const nodes = JSON.parse(new TextDecoder().decode(await unpacked(data.nodes)));
  const number = nodes.length;
  for (const run of data.runs) {
    run.rows = await Promise.all(run.parts.map(unpacked));
    for (const rows of run.rows)  // each row is the difference to the one before
      for (let each = number; each < rows.length; each++) rows[each] = rows[each] + rows[each - number] & 255;
  }
  const times = [...new Set(data.runs.flatMap(run => run.moments))].sort((one, other) => one - other);
  const canvases = [...document.querySelectorAll('#heat canvas')];
  const slider = at('moment'), chosen = at('resource'), readout = at('readout'), play = at('play');
  const inUnit = seconds => `${+(seconds / data.seconds).toFixed(2)} ${data.unit}`;

  // The percentages of a run at a time: those of the last moment before; of the fullest resource if none is chosen.
  const parts = (run, time) => {
    let row = run.moments.findLastIndex(each => each <= time);
    row = Math.max(row, 0);
    const slices = run.rows.map(rows => rows.subarray(row * number, (row + 1) * number));
    if (chosen.value >= 0) return slices[chosen.value];
    return Uint8Array.from({ length: number }, (_, node) => slices.reduce((most, slice) =>
      slice[node] === data.noNode ? most : most === data.noNode ? slice[node] : Math.max(most, slice[node]),
      data.noNode));
  };

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const stops = [1, 2, 3, 4, 5].map(each => style.getPropertyValue(`--h${each}`).trim())
      .map(text => [1, 3, 5].map(from => parseInt(text.slice(from, from + 2), 16)));
    const found = [style.getPropertyValue('--h0').trim()];
    for (let percent = 1; percent <= 100; percent++) {
      const place = Math.min(percent / 25, 3.999), low = Math.floor(place), part = percent < 100 ? place - low : 1;
      const mixed = stops[low].map((value, each) => Math.round(value + (stops[low + 1][each] - value) * part));
      found.push(`rgb(${mixed.join(',')})`);
    }
    return { found, line: style.getPropertyValue('--line').trim() };
  };

  // How large the squares are, so that a map is not much higher than 400 pixels.
  const layout = width => {
    let size = Math.max(2, Math.min(40, Math.floor(Math.sqrt(width * 380 / number))));
    while (size > 2 && Math.ceil(number / Math.floor(width / size)) * size > 400) size--;
    const columns = Math.max(1, Math.min(number, Math.floor(width / size)));
    return { size, columns, rows: Math.ceil(number / columns), gap: size > 12 ? 2 : size > 4 ? 1 : 0 };
  };

  const draw = () => {
    const time = times[slider.value], { found, line } = colours();
    for (const canvas of canvases) {
      const run = data.runs[canvas.dataset.run], values = parts(run, time);
      const width = canvas.parentElement.clientWidth || 700, { size, columns, rows, gap } = layout(width);
      const scale = Math.max(2, window.devicePixelRatio || 1);
      canvas.width = width * scale;
      canvas.height = rows * size * scale;
      const context = canvas.getContext('2d');
      context.scale(scale, scale);
      values.forEach((value, node) => {
        const x = node % columns * size, y = Math.floor(node / columns) * size, side = size - gap;
        if (value === data.noNode) {
          context.fillStyle = line;
          context.fillRect(x + side / 2 - 1, y + side / 2 - 1, 2, 2);
          return;
        }
        context.fillStyle = found[value];
        context.fillRect(x, y, side, side);
        if (value || side <= 4) return;
        context.strokeStyle = line;
        context.strokeRect(x + .5, y + .5, side - 1, side - 1);
      });
      const there = values.filter(value => value !== data.noNode), sum = there.reduce((all, value) => all + value, 0);
      const count = value => there.reduce((all, each) => all + (each === value), 0).toLocaleString('en');
      const mean = there.length ? Math.round(sum / there.length) : 0;
      const said = `${there.length.toLocaleString('en')} nodes: ${mean}% requested on average, `
        + `${count(100)} full, ${count(0)} empty`;
      canvas.setAttribute('aria-label', said);
      canvas.parentElement.querySelector('.said').textContent = said;
    }
    const shown = chosen.options[chosen.selectedIndex].textContent;
    readout.textContent = `After ${inUnit(time)}, by ${shown}`;
    slider.setAttribute('aria-valuetext', inUnit(time));
  };

  const pointed = event => {
    const canvas = event.currentTarget, run = data.runs[canvas.dataset.run];
    const { size, columns } = layout(canvas.parentElement.clientWidth || 700);
    const node = Math.floor(event.offsetY / size) * columns + Math.floor(event.offsetX / size);
    if (node >= number || event.offsetX >= columns * size) return;
    const value = parts(run, times[slider.value])[node];
    const said = value === data.noNode ? 'not there, or without this resource' : `${value}%`;
    canvas.parentElement.querySelector('.said').textContent = `${nodes[node]}: ${said}`;
  };

  let playing = 0;
  const stop = () => { clearInterval(playing); playing = 0; play.textContent = 'Play'; };
  play.addEventListener('click', () => {
    if (playing) { stop(); return; }
    if (+slider.value >= times.length - 1) slider.value = 0;
    play.textContent = 'Pause';
    playing = setInterval(() => {
      slider.value = +slider.value + 1;
      draw();
      if (+slider.value >= times.length - 1) stop();
    }, 150);
  });
  slider.max = times.length - 1;
  slider.value = Math.max(times.findLastIndex(each => each <= data.begin), 0);
  slider.addEventListener('input', draw);
  chosen.addEventListener('change', draw);
  for (const canvas of canvases) {
    canvas.addEventListener('pointermove', pointed);
    canvas.addEventListener('pointerleave', draw);
  }
  const root = document.documentElement.classList;
  addEventListener('resize', draw);
  addEventListener('beforeprint', () => { root.add('printing'); draw(); });
  addEventListener('afterprint', () => { root.remove('printing'); draw(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  document.querySelector('#heat .controls').hidden = false;
  draw();
  document.documentElement.dataset.drawn = 'yes';
})();
"""
