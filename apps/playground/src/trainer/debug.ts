/** For tests of lost devices: remembers every GPU device that is made, to make it go away. Only where the page's address asks for it. */

interface Destroyable {
  destroy(): void;
}

interface Adapters {
  readonly GPUAdapter?: { readonly prototype: { requestDevice(...given: unknown[]): Promise<Destroyable> } };
}

const devices = new Set<Destroyable>();

/** From now on devices are remembered. */
export function rememberDevices(): void {
  const prototype = (globalThis as Adapters).GPUAdapter?.prototype;
  if (prototype === undefined) return;
  const request = prototype.requestDevice;
  prototype.requestDevice = async function (...given): Promise<Destroyable> {
    const device = await request.apply(this, given);
    devices.add(device);
    return device;
  };
}

/** Destroys them, as a crash of the driver would. */
export function destroyDevices(): void {
  if (devices.size === 0) throw new Error('This engine has no device that could be lost.');
  for (const device of devices) device.destroy();
  devices.clear();
}
