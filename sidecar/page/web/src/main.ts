// The live page of tokenmeter's admin listener.

import "./style/page.css";
import { Page } from "./page.ts";
import { takeToken } from "./token.ts";

takeToken();
new Page().open();
