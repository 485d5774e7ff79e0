import { render } from "preact";
import { listen } from "./app/keys";
import { App } from "./ui/app";
import "./style/base.css";
import "./style/frame.css";
import "./style/run.css";
import "./style/trace.css";

listen();
const place = document.getElementById("app");
if (place) render(<App />, place);
