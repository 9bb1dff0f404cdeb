import { Markdown } from "../../parts/markdown";
export default function Memory() {
  return <><h1>Memory</h1><Markdown text="a" /></>;
}
