/*
 * The wording of the suites, as tables.  Changing a line changes the suite:
 * the digest in tests/unit/test_bench_suite.c says so.
 *
 * A fact never holds '.' or ',', so that it ends where its template goes on;
 * qualities of liked and barred things do not overlap, so that no fact is
 * part of another.
 */
#include <config.h>

#include "bench/words.h"

const char *
hf_fact_type_name(enum hf_fact_type t)
{
	static const char *const name[HF_FACT_TYPES] = { "name", "preference",
		"date", "number", "constraint" };

	return name[t];
}

const struct hf_template hf_templates[] = {
	{ HF_FACT_NAME, "Please put the booking under the name ", ".",
	    "Under which name did I ask you to put the booking?",
	    "Whom is the reservation to be kept for?" },
	{ HF_FACT_NAME, "The engineer who came by last week was ", ".",
	    "Who was the engineer that came by last week?",
	    "Which technician called on me some days ago?" },
	{ HF_FACT_NAME, "My parcel will be picked up by ", ", not by me.",
	    "Who did I say will pick up my parcel?",
	    "Whom do you hand the package to?" },
	{ HF_FACT_PREFERENCE, "Whenever I stay with you I would like ",
	    " in my room.", "What did I tell you I would like in my room?",
	    "What pleases me on arrival?" },
	{ HF_FACT_PREFERENCE, "As a welcome gift choose ", ", nothing else.",
	    "What should you choose as my welcome gift?",
	    "What present suits me?" },
	{ HF_FACT_PREFERENCE, "My usual order is ", ", as always.",
	    "Can you repeat my usual order?",
	    "What do you bring me each time?" },
	{ HF_FACT_DATE, "The boiler inspection was agreed for ", ".",
	    "For which day was the boiler inspection agreed?",
	    "When does somebody look at the heating?" },
	{ HF_FACT_DATE, "My rental contract ends on ", ", I think.",
	    "On which day did I say my rental contract ends?",
	    "From when on am I no longer a tenant?" },
	{ HF_FACT_DATE, "We are moving house on ", ", all of us.",
	    "When are we moving house, as I told you?",
	    "When do our boxes go to another flat?" },
	{ HF_FACT_NUMBER, "The damage report carries the reference ", ".",
	    "What reference does the damage report carry?",
	    "How is that claim filed with you?" },
	{ HF_FACT_NUMBER, "The driver needs the gate code ", " to get in.",
	    "What gate code does the driver need?",
	    "What must the courier type in at the barrier?" },
	{ HF_FACT_NUMBER, "The label on the meter reads ", ".",
	    "What did I say the label on the meter reads?",
	    "What is printed on that counter?" },
	{ HF_FACT_CONSTRAINT, "I must never be served ", ", not even a trace.",
	    "What must I never be served?", "Which food would harm me?" },
	{ HF_FACT_CONSTRAINT, "I react badly to ", ", so keep it away from me.",
	    "What do I react badly to?", "What makes me ill?" },
	{ HF_FACT_CONSTRAINT, "My daughter is allergic to ", ".",
	    "What is my daughter allergic to?", "What could hurt the girl?" },
};
const unsigned hf_n_templates = hf_countof(hf_templates);

const char *const hf_openers[] = { "", "Good morning. ", "Hello there. ",
	"Before we start: ", "One thing first. ",
	"Hi, a note for your file. " };
const unsigned hf_n_openers = hf_countof(hf_openers);

const char *const hf_acks[] = { "Thank you, I have written that down.",
	"Understood, that is in your file now.",
	"Good, I will bear that in mind during this call.",
	"Of course. What else can I do for you?",
	"That is noted. Please go on.", "All right, I have it." };
const unsigned hf_n_acks = hf_countof(hf_acks);

const char *const hf_first_names[HF_N_NAMES] = { "Adelis", "Brannoc",
	"Corisande", "Dagny", "Eskil", "Fionnula", "Gorran", "Hedvika",
	"Ishbel", "Jorunn", "Kester", "Lorcan", "Maelis", "Nerys", "Odhran",
	"Perpetua", "Quillon", "Ragnhild", "Sunniva", "Tancred", "Ulrika",
	"Vesna", "Wulfric", "Xanthe", "Yolande", "Zbigniew", "Anselm", "Bryony",
	"Cosimo", "Delphine" };

const char *const hf_last_names[HF_N_NAMES] = { "Ashgrove", "Birkenfell",
	"Coldwater", "Dunmarsh", "Eldersley", "Fennimore", "Greyhurst",
	"Hollowell", "Ironbridge", "Jessamy", "Kirkstall", "Lindqvist",
	"Mossbacher", "Northolt", "Okonjo", "Pellegrin", "Quarrington",
	"Ravensdale", "Stellenberg", "Thornbury", "Umbers", "Valdemar",
	"Wetherby", "Yarborough", "Zimmerlin", "Albescu", "Brookhaven",
	"Castellan", "Drummore", "Everling" };

const char *const hf_liked_qualities[HF_N_QUALITIES] = { "smoked", "salted",
	"lavender", "dark", "chilled", "hand-made", "Swedish", "old-fashioned",
	"unsweetened", "crisp" };

const char *const hf_liked_things[HF_N_THINGS] = { "almonds", "figs",
	"shortbread", "cider", "apricots", "ginger ale", "oat biscuits",
	"plum jam", "olives", "lemonade", "cocoa", "waffles" };

const char *const hf_barred_qualities[HF_N_QUALITIES] = { "pickled", "roasted",
	"fermented", "powdered", "raw", "candied", "tinned", "sprouted",
	"deep-fried", "marinated" };

const char *const hf_barred_things[HF_N_THINGS] = { "sesame", "celery",
	"lupin seeds", "mustard", "buckwheat", "squid", "mussels", "pine nuts",
	"fennel", "quinoa", "horseradish", "kiwi" };

const char *const hf_months[12] = { "January", "February", "March", "April",
	"May", "June", "July", "August", "September", "October", "November",
	"December" };

const struct hf_filler hf_fillers[] = {
	{ "How late is the front desk staffed in the evening?",
	    "Somebody sits at the front desk until half past eleven; after "
	    "that "
	    "the night bell by the side door rings upstairs." },
	{ "Do you have somewhere I can leave a bicycle?",
	    "Yes, the shed behind the kitchen locks, and the key hangs at the "
	    "front desk." },
	{ "What happens if my train is late?",
	    "Nothing bad. Rooms are held until the last train of the day has "
	    "come in." },
	{ "Is the path along the river open again?",
	    "It opened after the spring floods, but the stretch by the old "
	    "mill "
	    "is still muddy." },
	{ "Can I pay with a voucher?",
	    "Vouchers are fine for rooms and for dinner, though not for the "
	    "telephone bill." },
	{ "How do I reset the thermostat?",
	    "Hold both arrow keys until the display goes blank, then let go "
	    "and "
	    "wait for the little house to appear." },
	{ "Why does the tap in the bathroom knock?",
	    "Air sits in the pipe. Let the hot side run slowly for a minute "
	    "and "
	    "it should stop." },
	{ "What should I bring for the guided walk?",
	    "Boots with a good sole, something against rain, and a bottle for "
	    "water." },
	{ "Which side of the house gets the sun at breakfast time?",
	    "The east side, so ask for a room that looks at the orchard." },
	{ "How far is it to the nearest chemist?",
	    "Eight minutes on foot: down the hill, then right at the "
	    "fountain." },
	{ "Does the ferry run on public holidays?",
	    "It does, at the Sunday times, which means every other hour." },
	{ "Where can I leave a key when nobody is home?",
	    "There is a small safe beside the door; you choose its code when "
	    "you book." },
	{ "Could you explain what the service charge covers?",
	    "It covers the lift, the cleaning of the stairs and the insurance "
	    "of the building." },
	{ "How long does a refund take?",
	    "Most banks show it within four working days after we have sent "
	    "it." },
	{ "What is the quickest way to the airport?",
	    "The express bus from platform two; it needs thirty-five minutes "
	    "when the roads are clear." },
	{ "Are dogs welcome in the dining room?",
	    "In the front room they are, as long as they keep to the floor." },
	{ "How do I change the language of the menu?",
	    "Press the star key twice and then the number of the language that "
	    "you hear." },
	{ "When is the next collection of garden waste?",
	    "Garden waste goes in odd weeks; leave the sacks out by seven." },
	{ "What do the two lights on the router mean?",
	    "The upper one is the line and the lower one the wireless network; "
	    "both should be steady." },
	{ "Can I swap my seat after check-in?",
	    "Until one hour before departure you can, free of charge." },
	{ "Why is my bill higher than last month?",
	    "Last month had a credit on it; without that the two bills are "
	    "nearly equal." },
	{ "How should I store the spare battery?",
	    "Half full, dry and cool, and look after it every three months." },
	{ "Does the museum have a cloakroom?",
	    "It has lockers in the basement that take a coin and give it "
	    "back." },
	{ "What time does the kitchen close?",
	    "Hot dishes until nine, soup and bread until ten." },
	{ "How do I read the tide table?",
	    "Find the day on the left; the two bold figures are high water in "
	    "the morning and the evening." },
	{ "Is there a cheaper ticket for groups?",
	    "From six people on, each one travels at two thirds of the "
	    "price." },
	{ "How can I stop the paper edition?",
	    "Tell us the last day that you want it and it ends with that "
	    "issue." },
	{ "What is the difference between the two cleaning plans?",
	    "The large plan includes windows and the oven; the small one is "
	    "floors and dust." },
	{ "Can the workshop look at the brakes today?",
	    "If the car is here before noon they can, otherwise first thing "
	    "tomorrow." },
	{ "Who takes care of the hedge by the road?",
	    "The council trims it twice a year, in early summer and in late "
	    "autumn." },
	{ "How many stamps does a heavy letter need?",
	    "Two up to one hundred grams, four above that." },
	{ "What can I do about a wasps' nest under the roof?",
	    "Keep the window shut and call the fire station's office line; "
	    "they "
	    "move it for a small fee." },
	{ "Do I have to be at home for the chimney sweep?",
	    "Somebody must let him in, but a neighbour with a key is enough." },
	{ "What does the orange sticker on my bin mean?",
	    "It was too heavy for the lift of the lorry; take some out and it "
	    "goes next time." },
	{ "How do I hang the curtain without drilling?",
	    "A rod with a spring holds up to two kilos if the wall is "
	    "smooth." },
	{ "Where do I find the serial plate of the dishwasher?",
	    "Open the door: it sits on the inner edge, at the right." },
	{ "Can you tell me how the loyalty card works?",
	    "Every tenth visit is free, and the card never runs out." },
	{ "Is the swimming hall open in the morning?",
	    "For early swimmers from six to eight, for everybody from ten." },
	{ "How do I get the wine stain out of the tablecloth?",
	    "Salt at once, cold water after, and no hot water before it is "
	    "gone." },
	{ "Which form do I need for a parking permit?",
	    "The short green form, with a copy of the car's papers." },
	{ "Will the lift be repaired this week?",
	    "The part has come and the fitters are due on Thursday." },
	{ "What is a good time to plant the tulips?",
	    "When the nights get cold but before the ground is frozen." },
	{ "How do I make the phone ring longer?",
	    "Dial the service code for call time and then the seconds, up to "
	    "thirty." },
	{ "Do you deliver to the third floor?",
	    "We carry it up to your door, wherever that is." },
};
const unsigned hf_n_fillers = hf_countof(hf_fillers);
