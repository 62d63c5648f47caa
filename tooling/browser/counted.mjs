/** Files for `serve` that note when they are asked for. */

/**
 * @param files texts or bytes by path
 * @returns `served`, what `serve` takes; `asked()`, the paths asked for since the last `restart()`, in order
 */
export function counted(files) {
  const requests = [];
  const served = new Map(
    [...files].map(([name, text]) => [
      name,
      () => {
        requests.push(name);
        return text;
      },
    ]),
  );
  return {
    served,
    asked: () => [...requests],
    restart() {
      requests.length = 0;
    },
  };
}
