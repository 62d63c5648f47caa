/** The error of a device that only a new process can use again. In a separate file because pages have no such device. */
import { DeviceLostError } from './errors.ts';

/**
 * A fault of the device itself (an address out of bounds in a kernel, say), after which no engine of this process works on that device; a new
 * process can. Its values are gone, as with any lost device.
 *
 * @example
 * const error = new DeviceFaultError('cuda', 'a card', 'a kernel went out of bounds', 700);
 * error.fatal; // true
 */
export class DeviceFaultError extends DeviceLostError {
  override readonly name: string = 'DeviceFaultError';
  /** True: only a new process can use the device again. */
  readonly fatal = true;
  /** The driver's error code. `code` is the library's. */
  override readonly driverCode: number;

  constructor(engine: string, device: string, reason: string, driverCode: number, options?: ErrorOptions) {
    const told = '; no engine of this process works on it any more';
    super(engine, device, reason.includes(told) ? reason : reason + told, options);
    this.driverCode = driverCode;
  }

  override because(reason: string): DeviceFaultError {
    return new DeviceFaultError(this.engine, this.device, reason, this.driverCode, { cause: this });
  }
}
