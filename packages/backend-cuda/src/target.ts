/** Which PTX the driver takes. */

/** Versions of PTX of the drivers of CUDA 12, by its minor version. */
const ofTwelve = ['8.0', '8.1', '8.2', '8.3', '8.4', '8.5', '8.5', '8.6', '8.7', '8.8'];

/** The newest version of PTX for a driver: `version` is 1000 * major + 10 * minor of CUDA's. */
export function isaOf(version: number): string {
  const [major, minor] = [Math.floor(version / 1000), Math.floor((version % 1000) / 10)];
  if (major < 12) return `7.${minor}`;
  if (major === 12) return ofTwelve[Math.min(minor, ofTwelve.length - 1)]!;
  // Newer drivers take what older ones took.
  return '9.0';
}
