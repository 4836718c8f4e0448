// What the pages do in a browser beyond reading: they follow the cluster, draw the map, and copy commands.
//
// The server sends parts of the page as it renders them itself, and everything in them is escaped there. Updates are
// applied once per frame at most; while the page is hidden they are kept, and only the last of each part is applied.
(() => {
  'use strict';
  const body = document.body, said = document.getElementById('said'), state = document.getElementById('state');
  const waiting = new Map();  // what is to be applied, by part
  let frame = 0;

  const apply = () => {
    frame = 0;
    for (const work of waiting.values()) work();
    waiting.clear();
    document.documentElement.dataset.applied = +(document.documentElement.dataset.applied || 0) + 1;
  };
  const soon = (key, work) => {
    waiting.set(key, work);
    if (!frame && !document.hidden) frame = requestAnimationFrame(apply);
  };
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && waiting.size && !frame) frame = requestAnimationFrame(apply);
  });

  // -- parts of the page

  const focused = part => {
    const at = document.activeElement;
    if (!at || !part.contains(at)) return () => {};
    const all = [...part.querySelectorAll('a, button, input, select, summary, [tabindex]')], place = all.indexOf(at);
    const name = at.getAttribute('href') || at.id || at.name;
    return () => {
      const now = [...part.querySelectorAll('a, button, input, select, summary, [tabindex]')];
      const same = now.find(each => name && (each.getAttribute('href') || each.id || each.name) === name);
      (same || now[Math.min(place, now.length - 1)])?.focus({ preventScroll: true });
    };
  };
  const replace = ({ id, html }) => {
    let part = document.querySelector(`section[data-part="${id}"]`);
    if (!part) {
      if (!html) return;
      part = document.createElement('section');
      part.dataset.part = part.id = id;
      document.getElementById('content').append(part);
    }
    const closed = [...part.querySelectorAll('details')].map(each => each.open);
    const refocus = focused(part), typed = part.contains(document.activeElement)
      && ['INPUT', 'SELECT'].includes(document.activeElement.tagName);
    if (typed) return;  // what somebody is filling in stays
    part.innerHTML = html;
    part.querySelectorAll('details').forEach((each, at) => { if (at in closed) each.open = closed[at]; });
    refocus();
    offerCopies(part);
  };
  const addRows = ({ html }) => {
    const entries = document.getElementById('entries');
    if (!entries) return;
    const rows = document.createElement('template');
    rows.innerHTML = html;
    for (const each of rows.content.children) each.classList.add('changed');
    entries.prepend(rows.content);
    while (entries.children.length > +entries.dataset.most) entries.lastElementChild.remove();
    document.getElementById('none').hidden = true;
  };

  // -- commands

  const offerCopies = root => {
    for (const button of root.querySelectorAll('button.copy')) {
      button.hidden = false;
      const text = button.parentElement.querySelector('code').textContent;
      button.addEventListener('click', async () => {
        try {
          await navigator.clipboard.writeText(text);
          button.textContent = 'Copied';
          said.textContent = 'The command is copied.';
        } catch {
          getSelection().selectAllChildren(button.parentElement.querySelector('code'));
          said.textContent = 'The command is selected: copy it with the keyboard.';
        }
        setTimeout(() => { button.textContent = 'Copy'; }, 2000);
      });
    }
  };

  // -- the map: a canvas instead of the server's picture

  const map = (() => {
    const figure = document.getElementById('drawing');
    if (!figure) return null;
    const canvas = figure.querySelector('canvas'), caption = figure.querySelector('figcaption');
    const context = canvas.getContext('2d', { alpha: false });
    let found = null, values = new Uint8Array(), colours = new Map(), paper = '', line = '', at = -1, summary = '';
    let columns = 1, size = 10, gap = 1, scale = 1;

    const bytes = text => Uint8Array.from(atob(text), each => each.charCodeAt(0));
    const style = value => {
      if (value === found.nothing) return 'none';
      if (!found.fill) return `k${value}`;
      return `h${value >= 100 ? 5 : value > 75 ? 4 : value > 50 ? 3 : value > 25 ? 2 : value > 0 ? 1 : 0}`;
    };
    const readColours = () => {
      const css = getComputedStyle(document.documentElement), colour = name => css.getPropertyValue(name).trim();
      colours = new Map();
      for (let each = 0; each < 6; each += 1) colours.set(`h${each}`, colour(`--h${each}`));
      for (let each = 0; each < 8; each += 1) colours.set(`k${each}`, colour(`--c${each + 1}`));
      paper = colour('--paper');
      line = colour('--line');
    };
    const square = place => {
      const x = place % columns * size, y = Math.floor(place / columns) * size, side = size - gap;
      const named = style(values[place]);
      context.fillStyle = paper;
      context.fillRect(x, y, size, size);
      if (named === 'none') {
        context.fillStyle = line;
        context.fillRect(x + side / 2 - 1, y + side / 2 - 1, 2, 2);
      } else {
        context.fillStyle = colours.get(named);
        context.fillRect(x, y, side, side);
        if (named === 'h0' && side > 4) {
          context.strokeStyle = line;
          context.strokeRect(x + .5, y + .5, side - 1, side - 1);
        }
      }
      if (place === at) {
        context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue('--ink');
        context.strokeRect(x + .5, y + .5, side - 1, side - 1);
      }
    };
    const drawAll = () => {
      if (!found) return;
      const width = figure.clientWidth || 700, number = values.length;
      size = Math.max(5, Math.min(26, Math.floor(Math.sqrt(width * 340 / Math.max(number, 1)))));
      gap = size > 7 ? 2 : 1;
      columns = Math.max(1, Math.floor(width / size));
      const rows = Math.ceil(number / columns);
      scale = Math.max(1, window.devicePixelRatio || 1);
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(rows * size * scale);
      canvas.style.height = `${rows * size}px`;
      context.scale(scale, scale);
      context.lineWidth = 1;
      readColours();
      context.fillStyle = paper;
      context.fillRect(0, 0, width, rows * size);
      for (let place = 0; place < number; place += 1) square(place);
    };
    const of = place => {
      const value = values[place];
      if (value === found.nothing) return found.fill ? `none of ${found.by}` : `no ${found.by}`;
      return found.fill ? `${value}%` : found.keys[value].name;
    };
    const tell = () => {
      canvas.setAttribute('aria-label', at < 0 ? summary : `${found.names[at]}: ${of(at)}. ${summary}`);
      const names = found.names;
      caption.textContent = at < 0
        ? `${summary}. A square for each node, from ${names[0]} to ${names[names.length - 1]}; arrow keys go from node to node.`
        : `${names[at]}: ${of(at)}. Enter or a click opens it.`;
    };
    const point = place => {
      const before = at;
      at = place >= 0 && place < values.length ? place : -1;
      if (before === at) return;
      if (before >= 0) square(before);
      if (at >= 0) square(at);
      tell();
    };
    const under = event => {
      const x = Math.floor(event.offsetX / size), y = Math.floor(event.offsetY / size);
      return x < columns ? y * columns + x : -1;
    };
    const open = () => { if (at >= 0) location.href = `/nodes/${encodeURIComponent(found.names[at])}`; };
    canvas.addEventListener('pointermove', event => point(under(event)));
    canvas.addEventListener('pointerleave', () => { if (document.activeElement !== canvas) point(-1); });
    canvas.addEventListener('click', event => { point(under(event)); open(); });
    canvas.addEventListener('blur', () => point(-1));
    canvas.addEventListener('keydown', event => {
      const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
      let next = at;
      if (event.key in steps) next = at < 0 ? 0 : at + steps[event.key];
      else if (event.key === 'Home') next = 0;
      else if (event.key === 'End') next = values.length - 1;
      else if (event.key === 'Enter') { open(); return; } else if (event.key === 'Escape') next = -1;
      else return;
      event.preventDefault();
      point(Math.max(Math.min(next, values.length - 1), event.key === 'Escape' ? -1 : 0));
    });
    new ResizeObserver(() => drawAll()).observe(figure);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
    addEventListener('beforeprint', () => { document.documentElement.classList.add('printing'); drawAll(); });
    addEventListener('afterprint', () => { document.documentElement.classList.remove('printing'); drawAll(); });

    return {
      update(news) {
        if (news.said) summary = news.said;
        if (news.names) {
          found = news;
          values = bytes(news.values);
          figure.querySelector('.still')?.remove();
          canvas.hidden = false;
          drawAll();
        } else if (!found) {
          return;
        } else if (news.values) {
          values = bytes(news.values);
          drawAll();
        } else {
          for (const [place, value] of news.changed) {
            values[place] = value;
            square(place);
          }
        }
        tell();
      },
    };
  })();
  const mapNews = [];  // changes add up, so none may be left out
  const updateMap = news => {
    if (news.names) mapNews.length = 0;
    mapNews.push(news);
    soon('map', () => { for (const each of mapNews.splice(0)) map.update(each); });
  };

  // -- from the server

  const rowNews = [];
  const follow = () => {
    const address = body.dataset.events;
    if (!address || !window.EventSource) return;
    const stream = new EventSource(`${address}${address.includes('?') ? '&' : '?'}v=${body.dataset.version}`);
    const on = (name, work) => stream.addEventListener(name, event => work(JSON.parse(event.data)));
    on('part', news => soon(`part ${news.id}`, () => replace(news)));
    on('map', news => { if (map) updateMap(news); });
    on('rows', news => {
      rowNews.push(news);
      soon('rows', () => { for (const each of rowNews.splice(0)) addRows(each); });
    });
    on('state', ({ problem }) => {
      state.classList.toggle('off', problem !== '');
      state.textContent = problem === '' ? 'live' : `cannot be read now: ${problem}`;
    });
    on('version', ({ version }) => { body.dataset.version = version; });
    stream.addEventListener('open', () => {
      state.classList.remove('off');
      state.textContent = 'live';
      document.documentElement.dataset.live = 'yes';
    });
    stream.addEventListener('error', () => {
      state.classList.add('off');
      state.textContent = 'connection lost';
    });
    addEventListener('pagehide', () => stream.close());
  };

  // -- forms send themselves where one choice is all there is

  for (const form of document.querySelectorAll('form.controls')) {
    const fields = form.querySelectorAll('select, input');
    if (fields.length !== 1 || fields[0].tagName !== 'SELECT') continue;
    form.querySelector('button').hidden = true;
    fields[0].addEventListener('change', () => form.requestSubmit());
  }
  offerCopies(document);
  if (map) {
    const query = new URLSearchParams(location.search);
    fetch(`/api/?by=${encodeURIComponent(query.get('by') || '')}`, { headers: { Accept: 'application/json' } })
      .then(answer => answer.json())
      .then(data => {
        const label = document.querySelector('#drawing .still').getAttribute('aria-label');
        map.update({ ...data.map, said: label });
        document.documentElement.dataset.drawn = 'yes';
        follow();
      });
  } else {
    document.documentElement.dataset.drawn = 'yes';
    follow();
  }
})();
