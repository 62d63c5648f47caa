/**
 * What a page asks of its GPU: dispatches, submits, and bytes written, copied and allocated, by whichever library does it. Wraps the
 * methods of WebGPU's classes, so it counts everybody alike.
 */

const zero = () => ({ dispatches: 0, submits: 0, passes: 0, written: 0, copied: 0, allocated: 0 });
let counts = zero();

function wrap(owner, name, count) {
  const method = owner?.prototype[name];
  if (method === undefined) return;
  owner.prototype[name] = function counted(...args) {
    count(...args);
    return method.apply(this, args);
  };
}

const bytesOf = (data, offset, size) => {
  const unit = ArrayBuffer.isView(data) ? (data.BYTES_PER_ELEMENT ?? 1) : 1;
  return size === undefined ? data.byteLength - (offset ?? 0) * unit : size * unit;
};

/** Starts counting; once, before any library asks for a device. `lost` is called for devices that end without being destroyed. */
export function installCounters(lost) {
  const { GPUAdapter, GPUQueue, GPUComputePassEncoder, GPUCommandEncoder, GPUDevice } = globalThis;
  wrap(GPUQueue, 'submit', () => counts.submits++);
  wrap(GPUQueue, 'writeBuffer', (_, __, data, offset, size) => (counts.written += bytesOf(data, offset, size)));
  wrap(GPUComputePassEncoder, 'dispatchWorkgroups', () => counts.dispatches++);
  wrap(GPUComputePassEncoder, 'dispatchWorkgroupsIndirect', () => counts.dispatches++);
  wrap(GPUCommandEncoder, 'beginComputePass', () => counts.passes++);
  // The short form is (source, target, size?).
  wrap(GPUCommandEncoder, 'copyBufferToBuffer', (source, from, _, __, size) => {
    counts.copied += size ?? (typeof from === 'number' ? source.size - from : source.size);
  });
  const request = GPUAdapter?.prototype.requestDevice;
  if (request !== undefined)
    GPUAdapter.prototype.requestDevice = async function watched(...args) {
      const device = await request.apply(this, args);
      void device.lost.then(({ reason, message }) => reason !== 'destroyed' && lost(message || 'for no reason given'));
      return device;
    };
  wrap(GPUDevice, 'createBuffer', ({ size, mappedAtCreation }) => {
    counts.allocated += size;
    if (mappedAtCreation) counts.written += size;
  });
}

/** What `work` asks for until it is done. */
export async function countDuring(work) {
  counts = zero();
  await work();
  return { ...counts };
}
