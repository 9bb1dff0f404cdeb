// A chart of lines over time: with the figures under the pointer, a part of the time enlarged, lines
// hidden by their names, and all figures as a table and as CSV.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import { theme } from "../shell/theme";
import { words } from "../words/common";
import { toCsv } from "./csv";
import { chartTimes } from "./formats";
import { save } from "./save";

export interface Line {
  name: string;
  /** A value for each time; null where there is none. */
  values: (number | null)[];
}

// Told apart also by people who see few colours (Okabe and Ito), on light and on dark.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#888888"];
const HEIGHT = 180;
const DAY_S = 86_400;

/** The place of the pointer: the index of a time, and where it is drawn. */
interface Pointed {
  index: number;
  left: number;
}

export function Chart({
  title,
  times,
  stepS,
  lines,
  format,
}: {
  title: string;
  /** Unix seconds. */
  times: readonly number[];
  /** Seconds between two times: days are those of UTC. */
  stepS: number;
  lines: readonly Line[];
  format: (value: number) => string;
}) {
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [pointed, setPointed] = useState<Pointed>();
  const [isZoomed, setZoomed] = useState(false);
  const zone = stepS >= DAY_S ? "UTC" : undefined;
  const ends = [(times[0] ?? 0) - stepS / 2, (times.at(-1) ?? 0) + stepS / 2] as const;
  const names = lines.map(({ name }) => name).join("\n");

  useEffect(() => {
    const parent = element.current;
    if (parent === null) return;
    const style = getComputedStyle(parent);
    const axis = {
      stroke: style.color,
      grid: { stroke: style.borderTopColor, width: 1 },
      ticks: { stroke: style.borderTopColor, width: 1 },
      font: `12px ${style.fontFamily}`,
    };
    const time = chartTimes(zone, stepS >= DAY_S);
    const made = new uPlot(
      {
        width: parent.clientWidth,
        height: HEIGHT,
        ...(zone === undefined ? {} : { tzDate: (at: number) => uPlot.tzDate(new Date(at * 1e3), zone) }),
        legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false }, points: { size: 7 } },
        series: [
          {},
          ...lines.map((line, index) => ({
            label: line.name,
            stroke: COLOURS[index % COLOURS.length],
            width: 2,
            show: !hidden.has(line.name),
            points: { show: times.length < 50, size: 5 },
          })),
        ],
        axes: [
          { ...axis, space: 70, values: (_: uPlot, ticks: number[]) => ticks.map((at) => time.tick(at)) },
          { ...axis, size: 64, values: (_: uPlot, ticks: number[]) => ticks.map(format) },
        ],
        // Half a step on each side, so that the first and the last point are whole.
        scales: {
          x: {
            range: (_: uPlot, min: number, max: number) =>
              min <= (times[0] ?? min) && max >= (times.at(-1) ?? max) ? [...ends] : [min, max],
          },
          y: { range: (_: uPlot, __: number, max: number) => [0, max || 1] },
        },
        hooks: {
          setCursor: [
            ({ cursor }) => {
              const { idx, left } = cursor;
              const isInside = idx !== null && idx !== undefined && left !== undefined && left >= 0;
              setPointed(isInside ? { index: idx, left } : undefined);
            },
          ],
          setScale: [
            (self, name) => {
              if (name !== "x") return;
              const { min, max } = self.scales["x"] ?? {};
              setZoomed(min != null && max != null && (min > ends[0] || max < ends[1]));
            },
          ],
        },
      },
      [[...times], ...lines.map((line) => line.values)] as uPlot.AlignedData,
      parent,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => {
      made.setSize({ width: parent.clientWidth, height: HEIGHT });
    });
    observer.observe(parent);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
      setPointed(undefined);
      setZoomed(false);
    };
  }, [times, names, lines, theme.value]);

  function toggle(name: string, index: number): void {
    const now = new Set(hidden);
    if (!now.delete(name)) now.add(name);
    setHidden(now);
    plot.current?.setSeries(index + 1, { show: !now.has(name) });
  }

  function reset(): void {
    plot.current?.setScale("x", { min: ends[0], max: ends[1] });
  }

  /** Move to the next or the previous time with the arrow keys. */
  function move(event: KeyboardEvent): void {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined || plot.current === undefined) return;
    event.preventDefault();
    const from = pointed?.index ?? (step > 0 ? -1 : times.length);
    const index = Math.min(times.length - 1, Math.max(0, from + step));
    const left = plot.current.valToPos(times[index] ?? 0, "x");
    plot.current.setCursor({ left, top: 0 });
    setPointed({ index, left });
  }

  function download(): void {
    const time = chartTimes(zone, stepS >= DAY_S);
    const rows = times.map((at, index) => [time.exact(at), ...lines.map((line) => line.values[index] ?? null)]);
    const csv = toCsv([[words.chart.time, ...lines.map(({ name }) => name)], ...rows]);
    save(new Blob([csv]), `${title.replaceAll(/[^\p{L}\p{N}]+/gu, "-").toLowerCase()}.csv`);
  }

  return (
    <figure class="chart" aria-label={title}>
      <figcaption>
        <span>{title}</span>
        <span class="actions">
          {isZoomed && (
            <button type="button" class="quiet small" onClick={reset}>
              {words.chart.whole}
            </button>
          )}
          <button type="button" class="quiet small" onClick={download}>
            CSV<span class="visually-hidden"> {title}</span>
          </button>
        </span>
      </figcaption>
      <div class="plot-place">
        <div
          ref={element}
          class="plot"
          tabIndex={0}
          role="img"
          aria-label={words.chart.plot(title)}
          onKeyDown={move}
          onBlur={() => setPointed(undefined)}
        />
        {pointed !== undefined && (
          <Tooltip
            pointed={pointed}
            width={element.current?.clientWidth ?? 0}
            title={chartTimes(zone, stepS >= DAY_S).full(times[pointed.index] ?? 0)}
            rows={lines
              .map((line, index) => ({ line, index }))
              .filter(({ line }) => !hidden.has(line.name) && line.values[pointed.index] != null)
              .map(({ line, index }) => ({
                name: line.name,
                colour: COLOURS[index % COLOURS.length] ?? "",
                value: format(line.values[pointed.index] ?? 0),
              }))}
          />
        )}
      </div>
      <ul class="legend" aria-label={words.chart.lines(title)}>
        {lines.map((line, index) => (
          <li key={line.name}>
            <button
              type="button"
              class="legend-name"
              aria-pressed={!hidden.has(line.name)}
              onClick={() => toggle(line.name, index)}
            >
              <Swatch colour={COLOURS[index % COLOURS.length] ?? ""} /> {line.name}
            </button>
          </li>
        ))}
      </ul>
      <Table title={title} times={times} lines={lines} format={format} time={chartTimes(zone, stepS >= DAY_S).full} />
    </figure>
  );
}

function Tooltip({
  pointed,
  width,
  title,
  rows,
}: {
  pointed: Pointed;
  width: number;
  title: string;
  rows: readonly { name: string; colour: string; value: string }[];
}) {
  // Beside the pointer, on the side that has more room; 64 is the width of the axis.
  const left = pointed.left + 64;
  const place = left > width / 2 ? { right: `${width - left + 12}px` } : { left: `${left + 12}px` };
  return (
    <div class="tooltip" role="status" style={place}>
      <strong>{title}</strong>
      {rows.map(({ name, colour, value }) => (
        <span key={name}>
          <Swatch colour={colour} /> {name} <b>{value}</b>
        </span>
      ))}
    </div>
  );
}

function Swatch({ colour }: { colour: string }) {
  return (
    <svg width="12" height="12" aria-hidden="true">
      <rect width="12" height="12" rx="2" fill={colour} />
    </svg>
  );
}

function Table({
  title,
  times,
  lines,
  format,
  time,
}: {
  title: string;
  times: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
  time: (at: number) => string;
}) {
  const [isOpen, setOpen] = useState(false);
  const filled = times
    .map((at, index) => ({ at, values: lines.map((line) => line.values[index] ?? null) }))
    .filter(({ values }) => values.some((value) => value));
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{words.chart.table(title)}</summary>
      {isOpen && (
        <div class="scroll" tabIndex={0} role="region" aria-label={title}>
          <table>
            <thead>
              <tr>
                <th>{words.chart.time}</th>
                {lines.map((line) => (
                  <th key={line.name}>{line.name}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {filled.map(({ at, values }) => (
                <tr key={at}>
                  <td>{time(at)}</td>
                  {values.map((value) => (
                    <td>{value === null ? "" : format(value)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
