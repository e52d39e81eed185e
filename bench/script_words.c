/*
 * The scripts of the suite "ivr".  Changing a line changes the suite: the
 * digest in tests/unit/test_bench_suite.c says so.  Nobody's script.
 *
 * The line with the long answer is the one that a caller may interrupt.
 */
#include <config.h>

#include "bench/script.h"

#define FUNCTION(name, what)                                              \
	"{\"type\":\"function\",\"function\":{\"name\":\"" name           \
	"\",\"description\":\"" what                                      \
	"\",\"parameters\":{\"type\":\"object\",\"properties\":{\"key\":" \
	"{\"type\":\"string\"}}}}}"
#define SAY(text, answer)                       \
	{                                       \
		text, false, answer, NULL, NULL \
	}
#define CALL(text, tool, args)                \
	{                                     \
		text, false, NULL, tool, args \
	}
#define GET(result, answer)                      \
	{                                        \
		result, true, answer, NULL, NULL \
	}
#define END                                   \
	{                                     \
		NULL, false, NULL, NULL, NULL \
	}

const struct hf_script hf_scripts[] = {
	{ "booking",
	    "[" FUNCTION("find_table", "Look for a free table.") "," FUNCTION(
		"book_table", "Book a table.") "]",
	    { SAY("I would like a table for {people} on {date}.",
		  "A table for {people} on {date}. Under which name?"),
		CALL("Please put it under {name}.", "find_table",
		    "{\"date\":\"{date}\",\"people\":\"{people}\"}"),
		GET("free at {hour}",
		    "There is one at {hour}. Shall I take it, {name}?"),
		CALL("Yes, take that one.", "book_table",
		    "{\"name\":\"{name}\",\"date\":\"{date}\",\"hour\":"
		    "\"{hour}\"}"),
		GET("booked under {code}",
		    "It is booked, the number is {code}. A word about the "
		    "house: the kitchen closes an hour before midnight, dogs "
		    "are welcome on the terrace only, the car park behind the "
		    "chapel is free for guests, and we keep a table for a "
		    "quarter of an hour before somebody else may have it."),
		SAY("Wait, which number was that?", "The number is {code}."),
		SAY("One more is coming, we will be {people}.",
		    "I have changed it to {people}."),
		SAY("So when do you expect us, how many, and under which name?",
		    "On {date} at {hour}, {people}, under {name}."),
		SAY("And the number of the booking once more?",
		    "It is {code}."),
		END } },
	{ "billing",
	    "[" FUNCTION("get_bill", "Fetch the last bill.") "," FUNCTION(
		"open_case", "Open a case about a bill.") "]",
	    { SAY("My customer number is {code}.",
		  "Thank you, I have {code}. What is it about?"),
		CALL("My last bill is far too high.", "get_bill",
		    "{\"customer\":\"{code}\"}"),
		GET("{amount} euros, due on {date}",
		    "It says {amount} euros, due on {date}. What is wrong "
		    "with it?"),
		CALL("I never rang anybody abroad. Give it to {name}.",
		    "open_case",
		    "{\"customer\":\"{code}\",\"clerk\":\"{name}\"}"),
		GET("opened as {case}",
		    "I have opened it as {case} for {name}. While it is "
		    "looked at nothing will be taken from your account, "
		    "reminders that are already in the post can be thrown "
		    "away, and a letter tells you within ten working days "
		    "what was found and what, if anything, is left to pay."),
		SAY("Stop, as what did you open it?", "As {case}."),
		SAY("How much was it again, and until when?",
		    "It was {amount} euros, until {date}."),
		SAY("Which customer number do you have for me?",
		    "I have {code}."),
		SAY("And who looks at it?", "{name} does."), END } },
	{ "outage",
	    "[" FUNCTION("check_grid",
		"Look for faults of the grid.") "," FUNCTION("tell_crew",
		"Tell a crew something.") "]",
	    { SAY("There is no power behind the meter {code}.",
		  "The meter {code}, I see. Since when?"),
		CALL("It has been dark since {date}.", "check_grid",
		    "{\"meter\":\"{code}\",\"since\":\"{date}\"}"),
		GET("fault {case}, crew of {name}",
		    "There is a fault, it has the number {case}. The crew of "
		    "{name} is out there. Is anybody in danger?"),
		SAY("Nobody, but they should ring me at {phone}.",
		    "They will ring you at {phone}. Shall I tell them now?"),
		CALL("Yes, tell them now.", "tell_crew",
		    "{\"fault\":\"{case}\",\"ring\":\"{phone}\"}"),
		GET("told",
		    "They know. Please leave one lamp switched on so that you "
		    "see when the power is back, keep the freezer shut, for a "
		    "full one stays cold for a day, and do not open the grey "
		    "cabinet at the corner of the street, however much it "
		    "hums, before somebody of ours has been at it."),
		SAY("Sorry, whose crew was it?", "The crew of {name}."),
		SAY("Which number has the fault, and where do they ring me?",
		    "It has {case}, and they ring you at {phone}."),
		SAY("Since when did I say it is dark, and behind which meter?",
		    "Since {date}, behind {code}."),
		END } },
	{ "refill",
	    "[" FUNCTION("find_box", "Look a prescription up.") "," FUNCTION(
		"refill_box", "Order a refill.") "]",
	    { SAY("This is {name}, my tablets are nearly gone.",
		  "Good day, {name}. What is the number on the box?"),
		CALL(
		    "The box says {code}.", "find_box", "{\"box\":\"{code}\"}"),
		GET("{left} left on it",
		    "There are {left} left on it. Is there anything that you "
		    "react to?"),
		CALL("Yes, to {allergy}.", "refill_box",
		    "{\"box\":\"{code}\",\"without\":\"{allergy}\"}"),
		GET("ready on {date}",
		    "It will be ready on {date}. Somebody may fetch it for "
		    "you, with a note that you have signed; the counter is "
		    "open at noon too, the lift is being repaired, so please "
		    "ring the bell beside the ramp, and bring the old box, "
		    "because we send those back to be used again."),
		SAY("When was that?", "On {date}."),
		SAY("What did you write down that I react to?",
		    "That you react to {allergy}."),
		SAY("Which number did I read to you, and how many are left?",
		    "You read {code}, and there are {left} left."),
		SAY("And for whom is it?", "For {name}."), END } },
};
const unsigned hf_n_scripts = hf_countof(hf_scripts);
