// A chart of lines over time, and the same figures as a table.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

import { theme } from "../../shell/theme";
import { when } from "../../parts/formats";
import type { Line } from "./series";

// Told apart also by people who see few colours (Okabe and Ito), on light and on dark.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#888888"];
const HEIGHT = 200;

export function Chart({
  title,
  times,
  lines,
  format,
}: {
  title: string;
  /** Unix seconds. */
  times: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
}) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const parent = element.current;
    if (parent === null) return;
    const style = getComputedStyle(parent);
    const axis = {
      stroke: style.color,
      grid: { stroke: style.borderTopColor, width: 1 },
      ticks: { stroke: style.borderTopColor, width: 1 },
    };
    const plot = new uPlot(
      {
        width: parent.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        series: [
          {},
          ...lines.map((line, index) => ({
            label: line.name,
            stroke: COLOURS[index],
            width: 2,
            points: { show: times.length < 50 },
          })),
        ],
        axes: [axis, { ...axis, size: 70, values: (_: uPlot, ticks: number[]) => ticks.map(format) }],
        scales: { y: { range: (_: uPlot, __: number, max: number) => [0, max || 1] } },
      },
      [[...times], ...lines.map((line) => line.values)] as uPlot.AlignedData,
      parent,
    );
    const observer = new ResizeObserver(() => {
      plot.setSize({ width: parent.clientWidth, height: HEIGHT });
    });
    observer.observe(parent);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [times, lines, theme.value]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={element} class="plot" aria-hidden="true" />
      <ul class="legend" aria-hidden="true">
        {lines.map((line, index) => (
          <li key={line.name}>
            <Swatch colour={COLOURS[index] ?? ""} /> {line.name}
          </li>
        ))}
      </ul>
      <details>
        <summary>{title} as a table</summary>
        <Table times={times} lines={lines} format={format} label={title} />
      </details>
    </figure>
  );
}

function Swatch({ colour }: { colour: string }) {
  return (
    <svg width="12" height="12" aria-hidden="true">
      <rect width="12" height="12" fill={colour} />
    </svg>
  );
}

function Table({
  times,
  lines,
  format,
  label,
}: {
  times: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
  label: string;
}) {
  const filled = times
    .map((time, index) => ({ time, values: lines.map((line) => line.values[index] ?? null) }))
    .filter(({ values }) => values.some((value) => value));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            <th>Time</th>
            {lines.map((line) => (
              <th key={line.name}>{line.name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {filled.map(({ time, values }) => (
            <tr key={time}>
              <td>{when(time)}</td>
              {values.map((value) => (
                <td>{value === null ? "" : format(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
