// Search runs in a worker. A browser starts none for a page that was opened from a folder: it then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data: structuredClone(data) }));
      this.tell = (data) => setTimeout(() => inside.onmessage({ data: inside.structuredClone(data) }));
      const script = inside.document.createElement("script");
      script.src = new URL(address, location.href);
      script.onload = () => {
        this.ready = true;
        this.waiting.splice(0).forEach(this.tell);
      };
      inside.document.head.append(script);
    }
    postMessage(data) {
      if (this.ready) this.tell(data);
      else this.waiting.push(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
