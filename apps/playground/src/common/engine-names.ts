/** Engines as a visitor reads of them. */

const TITLES: Readonly<Record<string, string>> = { cpu: 'CPU', webgpu: 'WebGPU' };

/** The name of an engine: `CPU` for cpu. */
export function engineTitle(name: string): string {
  return TITLES[name] ?? name;
}

/** An engine and its device: `CPU, 2 threads` or `WebGPU (vendor model)`. */
export function engineText(name: string, device: string): string {
  const title = engineTitle(name);
  return device.startsWith(title) ? device : `${title} (${device})`;
}
