/** Text tables for terminals: first column to the left, the others to the right. */

export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) =>
    Math.max(...[header, ...rows].map((row) => (row[column] ?? '').length), title.length),
  );
  const line = (cells: readonly string[]): string =>
    widths
      .map((width, column) => {
        const cell = cells[column] ?? '';
        return column === 0 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  return [line(header), rule, ...rows.map(line)].join('\n');
}

/** Three significant digits, without exponents where people would not expect them. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '-';
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  return size >= 0.095 ? value.toFixed(2) : value.toPrecision(2);
}

/** `median/best`. */
export function formatPair(pair: { readonly median: number; readonly best: number }): string {
  return `${formatNumber(pair.median)}/${formatNumber(pair.best)}`;
}
